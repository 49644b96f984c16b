"""XLA's compilation from any stage to any later one: `compile(input, config, observers) -> Compilation`."""

from .compilation import Checkpoint, Compilation, CompilationInput, Counted, compile
from .config import ReplayConfig, replay_config
from .spans import ModuleTexts, PassObserver, PassResult, Span
