# Completion of errtriage for bash. Written by pytest --regenerate from tests/shell_scripts.py: do not edit it here.

# Sets $place for the cursor at the end of $words: the command, and behind an option also the option.
_errtriage_place() {
    local current=${words[${#words[@]} - 1]} word behind= dashes=
    place=errtriage
    for word in "${words[@]:1:${#words[@]}-2}"; do
        if [[ $word == -- ]]; then
            dashes=1 behind=
        elif [[ $word == -* && ! $dashes ]]; then
            behind=" $word"
        else
            behind=
            case "$place $word" in
                'errtriage explain' | \
                'errtriage lint' | \
                'errtriage scan' | \
                'errtriage audit' | \
                'errtriage codes' | \
                'errtriage tree' | \
                'errtriage rules' | \
                'errtriage contracts' | \
                'errtriage contracts list' | \
                'errtriage contracts show' | \
                'errtriage contracts path' | \
                'errtriage contracts new' | \
                'errtriage contracts check')
                    place+=" $word"
                    ;;
            esac
        fi
    done
    if [[ $dashes || $current != -* ]]; then
        place+=$behind
    elif [[ $current == --*=* ]]; then
        place+=" ${current%%=*}"
    else
        place=option
    fi
}

# Whether a file name is wanted at $place.
_errtriage_file() {
    case $place in
        'errtriage explain --pack' | \
        'errtriage lint --baseline' | \
        'errtriage lint --write-baseline' | \
        'errtriage lint --pack' | \
        'errtriage scan --output' | \
        'errtriage scan -o' | \
        'errtriage scan --pack' | \
        'errtriage audit --baseline' | \
        'errtriage audit --write-baseline' | \
        'errtriage audit --pack' | \
        'errtriage codes --pack' | \
        'errtriage tree --pack' | \
        'errtriage rules --pack' | \
        'errtriage contracts list --pack' | \
        'errtriage contracts show --pack' | \
        'errtriage contracts path --pack' | \
        'errtriage contracts new --into')
            return 0
            ;;
        'errtriage explain --format' | \
        'errtriage explain -f' | \
        'errtriage explain --contract' | \
        'errtriage explain --tool' | \
        'errtriage explain --status' | \
        'errtriage explain --header' | \
        'errtriage explain --color' | \
        'errtriage lint --format' | \
        'errtriage lint -f' | \
        'errtriage lint --select' | \
        'errtriage lint --ignore' | \
        'errtriage lint --fail-on' | \
        'errtriage lint --contract' | \
        'errtriage lint --workers' | \
        'errtriage lint --color' | \
        'errtriage scan --format' | \
        'errtriage scan -f' | \
        'errtriage scan --since' | \
        'errtriage scan --until' | \
        'errtriage scan --top' | \
        'errtriage scan --only' | \
        'errtriage scan --workers' | \
        'errtriage scan --cluster' | \
        'errtriage scan --fail-on' | \
        'errtriage scan --color' | \
        'errtriage audit --format' | \
        'errtriage audit -f' | \
        'errtriage audit --session' | \
        'errtriage audit --select' | \
        'errtriage audit --ignore' | \
        'errtriage audit --fail-on' | \
        'errtriage audit --contract' | \
        'errtriage audit --workers' | \
        'errtriage audit --color' | \
        'errtriage contracts check --format' | \
        'errtriage contracts check -f' | \
        'errtriage contracts check --color')
            return 1
            ;;
        'errtriage explain' | \
        'errtriage explain -'* | \
        'errtriage lint' | \
        'errtriage lint -'* | \
        'errtriage scan' | \
        'errtriage scan -'* | \
        'errtriage audit' | \
        'errtriage audit -'* | \
        'errtriage contracts check' | \
        'errtriage contracts check -'*)
            return 0
            ;;
    esac
    return 1
}

_errtriage_completion() {
    local program=$1 current=$2 rest=${COMP_LINE:0:COMP_POINT} place space word i
    local -a words=()
    # Bash splits words at = and at colons too. Here they are whole, and end at the cursor.
    for ((i = 0; i <= COMP_CWORD; i++)); do
        space=${rest%%[![:space:]]*}
        rest=${rest#"$space"}
        word=${COMP_WORDS[i]}
        ((i < COMP_CWORD)) || word=$rest
        rest=${rest#"$word"}
        if [[ $space || $i == 0 ]]; then
            words+=("$word")
        else
            words[${#words[@]} - 1]+=$word
        fi
    done
    # Some codes are negative numbers. For Typer they are no options only behind --.
    if [[ ${words[${#words[@]} - 1]} == -[0-9]* ]]; then
        words=("${words[@]:0:${#words[@]}-1}" -- "${words[${#words[@]} - 1]}")
    fi
    COMPREPLY=()
    _errtriage_place
    if _errtriage_file; then
        return # having got nothing, bash completes a file name
    fi
    compopt +o default +o bashdefault 2> /dev/null # and here none; the bash of macOS is too old for that

    # What bash replaces is what stands behind the last = or colon.
    word=${words[${#words[@]} - 1]}
    [[ $word == --*=* ]] && word=${word#*=}
    word=${word%"$current"}
    [[ $word == *[:=] ]] || word=
    [[ $program == "~/"* ]] && program=$HOME/${program#"~/"}
    local IFS=$'\n' offer
    while read -r offer; do
        [[ $offer ]] && COMPREPLY+=("${offer#"$word"}")
    done < <(env _ERRTRIAGE_COMPLETE=complete_bash COMP_CWORD=$((${#words[@]} - 1)) COMP_WORDS="${words[*]}" "$program" 2> /dev/null)
    # What the shell would take apart is quoted, unless a quotation mark does so already.
    if [[ ${words[${#words[@]} - 1]} != *[\"\']* && ${#COMPREPLY[@]} -gt 0 ]]; then
        for i in "${!COMPREPLY[@]}"; do
            printf -v offer %q "${COMPREPLY[i]}"
            COMPREPLY[i]=$offer
        done
    fi
}

complete -o bashdefault -o default -F _errtriage_completion errtriage
