"""Pass ordering for gymnasium: `gymnasium.make("hlofuse.gym:hlofuse/PassOrdering-v0", modules="train")`."""

import gymnasium

gymnasium.register("hlofuse/PassOrdering-v0", "hlofuse.gym.env:HloPassEnv")
