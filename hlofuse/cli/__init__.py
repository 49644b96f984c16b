"""The command line: a file for each command with more than options and a report, else `library/questions.py`.
`main.py` imports a command when it is called, with everything that the command needs."""
