"""XLA's compilation from any stage to any later one: `compile(input, config, observers) -> Compilation`."""

from .compilation import Checkpoint as Checkpoint
from .compilation import Compilation as Compilation
from .compilation import CompilationInput as CompilationInput
from .compilation import Counted as Counted
from .compilation import compile as compile
from .config import ReplayConfig as ReplayConfig
from .config import replay_config as replay_config
from .spans import ModuleTexts as ModuleTexts
from .spans import PassObserver as PassObserver
from .spans import PassResult as PassResult
from .spans import Span as Span
