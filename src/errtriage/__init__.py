"""errtriage turns a failing answer into the next right step.

``triage`` is the whole Python interface: it finds the payloads in a value or in bytes, applies their contracts and
returns one Verdict for each. Importing this package is cheap; the work is imported with the first call.
"""

from __future__ import annotations

# Not typing's: importing typing takes longer than all the rest of this file. Type checkers know the name.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from errtriage.model import Verdict

__all__ = ["triage"]
__version__ = "0.1.0"


def triage(
    value_or_bytes: Any,
    *,
    contract: str | None = None,
    tool: str | None = None,
    status: int | None = None,
    headers: Mapping[str, str] | None = None,
    packs: Sequence[str] = (),
) -> list[Verdict]:
    """Return a verdict for each payload in a JSON value, a text or bytes, in order; an empty list where there is none.

    Bytes and text may be anything that holds payloads: a document, JSON Lines, a log, a raw HTTP response, compressed
    or not. With ``contract`` only that contract is sought. ``tool`` is the name of the tool that answered, or a class of
    tools. ``status`` and ``headers`` are what the transport knew when only the body was kept. ``packs`` are folders of
    contract packs to use beside the bundled ones; no others are looked for. Secrets are redacted.

    Raises ``errtriage.model.Failure`` for a contract that there is not, or a pack that cannot be used.
    """
    from errtriage.contracts import with_packs
    from errtriage.inputs import decode, decompress
    from errtriage.model import Http
    from errtriage.verdicts import Triage

    if packs:
        from errtriage.overlay import named

        contracts = with_packs(named([packs] if isinstance(packs, str) else packs))
    else:
        contracts = with_packs(())
    worker = Triage(contracts, forced=contracts.get(contract) if contract else None, tool=tool, http=Http.known(status, headers))
    if isinstance(value_or_bytes, bytes | bytearray | memoryview):
        text, lossy = decode(decompress(bytes(value_or_bytes)).data)
        return list(worker.text(text, lossy=lossy))
    if isinstance(value_or_bytes, str):
        return list(worker.text(value_or_bytes))
    return list(worker.value(value_or_bytes))
