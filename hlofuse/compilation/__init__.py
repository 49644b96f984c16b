"""XLA's compilation from any stage to any later one: `compile(input, config, observers) -> Compilation`."""

from hlofuse.compilation.compilation import Checkpoint as Checkpoint
from hlofuse.compilation.compilation import Compilation as Compilation
from hlofuse.compilation.compilation import CompilationInput as CompilationInput
from hlofuse.compilation.compilation import Counted as Counted
from hlofuse.compilation.compilation import compile as compile
from hlofuse.compilation.config import ReplayConfig as ReplayConfig
from hlofuse.compilation.config import replay_config as replay_config
from hlofuse.compilation.spans import ModuleTexts as ModuleTexts
from hlofuse.compilation.spans import PassObserver as PassObserver
from hlofuse.compilation.spans import PassResult as PassResult
from hlofuse.compilation.spans import Span as Span
