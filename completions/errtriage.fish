# Completion of errtriage for fish. Written by pytest --regenerate from tests/shell_scripts.py: do not edit it here.

function __errtriage_place --description 'The command at the cursor, and behind an option also the option'
    set -l place errtriage
    set -l behind
    set -l dashes
    set -l current (commandline -ct)
    set -l words (commandline -opc)
    for word in $words[2..-1]
        if test "$word" = --
            set dashes 1
            set behind
        else if string match -q -- '-*' $word; and not set -q dashes[1]
            set behind $word
        else
            set behind
            switch "$place $word"
                case 'errtriage explain' \
                    'errtriage lint' \
                    'errtriage scan' \
                    'errtriage audit' \
                    'errtriage codes' \
                    'errtriage tree' \
                    'errtriage rules' \
                    'errtriage contracts' \
                    'errtriage contracts list' \
                    'errtriage contracts show' \
                    'errtriage contracts path' \
                    'errtriage contracts new' \
                    'errtriage contracts check'
                    set place "$place $word"
            end
        end
    end
    if set -q dashes[1]; or not string match -q -- '-*' $current
        string join ' ' -- $place $behind
    else if string match -q -- '--*=*' $current
        string join ' ' -- $place (string replace -r '=.*' '' -- $current)
    else
        echo option
    end
end

function __errtriage_file --description 'Whether a file name is wanted at the cursor'
    switch (__errtriage_place)
        case 'errtriage explain --pack' \
            'errtriage lint --baseline' \
            'errtriage lint --write-baseline' \
            'errtriage lint --pack' \
            'errtriage scan --output' \
            'errtriage scan -o' \
            'errtriage scan --pack' \
            'errtriage audit --baseline' \
            'errtriage audit --write-baseline' \
            'errtriage audit --pack' \
            'errtriage codes --pack' \
            'errtriage tree --pack' \
            'errtriage rules --pack' \
            'errtriage contracts list --pack' \
            'errtriage contracts show --pack' \
            'errtriage contracts path --pack' \
            'errtriage contracts new --into'
            return 0
        case 'errtriage explain --format' \
            'errtriage explain -f' \
            'errtriage explain --contract' \
            'errtriage explain --tool' \
            'errtriage explain --status' \
            'errtriage explain --header' \
            'errtriage explain --color' \
            'errtriage lint --format' \
            'errtriage lint -f' \
            'errtriage lint --select' \
            'errtriage lint --ignore' \
            'errtriage lint --fail-on' \
            'errtriage lint --contract' \
            'errtriage lint --workers' \
            'errtriage lint --color' \
            'errtriage scan --format' \
            'errtriage scan -f' \
            'errtriage scan --since' \
            'errtriage scan --until' \
            'errtriage scan --top' \
            'errtriage scan --only' \
            'errtriage scan --workers' \
            'errtriage scan --cluster' \
            'errtriage scan --fail-on' \
            'errtriage scan --color' \
            'errtriage audit --format' \
            'errtriage audit -f' \
            'errtriage audit --session' \
            'errtriage audit --select' \
            'errtriage audit --ignore' \
            'errtriage audit --fail-on' \
            'errtriage audit --contract' \
            'errtriage audit --workers' \
            'errtriage audit --color' \
            'errtriage contracts check --format' \
            'errtriage contracts check -f' \
            'errtriage contracts check --color'
            return 1
        case 'errtriage explain' \
            'errtriage explain -*' \
            'errtriage lint' \
            'errtriage lint -*' \
            'errtriage scan' \
            'errtriage scan -*' \
            'errtriage audit' \
            'errtriage audit -*' \
            'errtriage contracts check' \
            'errtriage contracts check -*'
            return 0
    end
    return 1
end

function __errtriage_offers --description 'What errtriage offers at the cursor'
    set -l current (commandline -ct)
    set -l words (commandline -opc)
    set -l program (string replace -r '^~/' "$HOME/" -- $words[1])
    # Quoted for Python's shlex, which does not know fish's quoting.
    set -l line "'"(string replace -a "'" "'\"'\"'" -- $words)"'"
    # Some codes are negative numbers. For Typer they are no options only behind --.
    string match -qr -- '^-[0-9]' $current; and set current "-- $current"
    set -l option (string match -r -- '^--[^=]+=' $current)
    for offer in (env _ERRTRIAGE_COMPLETE=complete_fish _TYPER_COMPLETE_FISH_ACTION=get-args TERMINAL_WIDTH=9999 \
            _TYPER_COMPLETE_ARGS="$line $current" $program 2> /dev/null)
        test -n "$offer"; and printf '%s\n' "$option$offer"
    end
end

complete --command errtriage --condition __errtriage_file --force-files
complete --command errtriage --condition 'not __errtriage_file' --no-files --arguments '(__errtriage_offers)'
