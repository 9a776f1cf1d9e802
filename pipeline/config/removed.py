"""Keys that earlier versions had, and what to write instead."""

REMOVED: dict[str, str] = {
    "score.command_timeout": "a scorer in a Python file runs a program: see docs/scorers.md",
    "score.commands": "a scorer in a Python file runs a program: see docs/scorers.md",
    "statistics": "leave the section out; `paraloom papers statistics RUN` prints the figures",
}
