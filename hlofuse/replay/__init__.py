"""One replay of XLA's fusion passes: `replay(input, config, observers) -> Replay`."""

from hlofuse.replay.config import ReplayConfig as ReplayConfig
from hlofuse.replay.config import replay_config as replay_config
from hlofuse.replay.replay import replay as replay
from hlofuse.replay.result import Checkpoint as Checkpoint
from hlofuse.replay.result import ModuleTexts as ModuleTexts
from hlofuse.replay.result import PassResult as PassResult
from hlofuse.replay.result import Replay as Replay
from hlofuse.replay.result import ReplayInput as ReplayInput
from hlofuse.replay.result import ReplayObserver as ReplayObserver
