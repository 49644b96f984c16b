"""One replay of XLA's fusion passes: `replay(input, config, observers) -> Replay`."""

from hlofuse.pipelines.device import XlaBuild
from hlofuse.replay.config import ReplayConfig, replay_config
from hlofuse.replay.input import ReplayInput
from hlofuse.replay.replay import replay
from hlofuse.replay.result import Checkpoint, ModuleTexts, PassResult, Replay, ReplayObserver

__all__ = [
    "Checkpoint",
    "ModuleTexts",
    "PassResult",
    "Replay",
    "ReplayConfig",
    "ReplayInput",
    "ReplayObserver",
    "XlaBuild",
    "replay",
    "replay_config",
]
