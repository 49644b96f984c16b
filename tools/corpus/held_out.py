"""Programs that no rule was derived from: a measure on unseen modules.

Open no module of these to mend something; a program that was opened belongs in libraries.py from then on.
"""

from held import actions, generation, keras_and_linen, libraries, speech, stateful

PARTS = (keras_and_linen, libraries, stateful, speech, actions, generation)

PROGRAMS = {name: make for part in PARTS for name, make in part.PROGRAMS.items()}
