"""The commands: one definition each, for ``%memory NAME`` and for ``ipymemory NAME``.

`pages` says what a command is and gives back, `place` what it sees, `calling` how words become
arguments; `table` holds them all, in the order in which help shows them. The other rooms are one
command or a few siblings each. None of them knows IPython.
"""
