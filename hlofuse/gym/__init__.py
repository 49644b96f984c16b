"""Pass ordering as an environment of gymnasium, `hlofuse/PassOrdering-v0`.

gymnasium.make("hlofuse.gym:hlofuse/PassOrdering-v0", modules="train")
"""

from hlofuse.gym.env import register

register()
