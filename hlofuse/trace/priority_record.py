"""XLA's fusion log of PriorityFusion: `….priority_fusion_dump.txt`, a `FusionProcessDumpProto` as text. XLA
writes it with its dumps when the pass is dumped (`--xla_dump_hlo_pass_re=priority-fusion`)."""

import re
from collections.abc import Iterator
from typing import TypeAlias

from msgspec import Struct

from hlofuse.ir import Record, Strings
from hlofuse.ir.text.text import bad_escape, unquote


class PriorityStep(Record):
    """A priority that was computed (`UpdatePriorityStep`); microseconds."""

    producer: str
    consumers: Strings
    us_fused: float
    us_unfused: float


class FusionStep(Record):
    """A fusion that was made (`FusionStep`)."""

    fusion: str
    producer: str
    consumer: str


class IneligibleStep(Record):
    """A refusal (`ProducerIneligibleStep`)."""

    producer: str
    reason: str


RecordedStep: TypeAlias = PriorityStep | FusionStep | IneligibleStep


class PriorityRecord(Struct):
    """The steps, in the order XLA took them down."""

    steps: list[RecordedStep] = []
    device: dict[str, int] = {}
    """Whole numbers of the device it was made for (`gpu_device_info`), as far as the record tells."""
    file: str = ""  # The file that it was read from

    def is_of(self, device: object) -> bool:
        """It was made for this device, or does not say for which."""
        numbers = {k: v for k, v in self.device.items() if k != "device_memory_size"}
        return all(getattr(device, name, number) == number for name, number in numbers.items())

    def fusions(self) -> list[FusionStep]:
        return [s for s in self.steps if isinstance(s, FusionStep)]


_STEP = re.compile(r"^ *fusion_steps \{\n *(\w+) \{\n(.*?)\n *\}\n *\}$", re.DOTALL | re.MULTILINE)
_FIELD = re.compile(r'^ *(\w+): (?:("(?:[^"\\]|\\.)*")|(\S+))$', re.MULTILINE)
_DEVICE = re.compile(r"^gpu_device_info \{\n(.*?)^\}", re.DOTALL | re.MULTILINE)
_WHOLE = re.compile(r"^  (\w+): (\d+)$", re.MULTILINE)


def read_priority_record(text: str, file: str = "") -> PriorityRecord:
    """The steps of a record and its device's numbers; the module in it is passed over."""
    device = _DEVICE.search(text)
    numbers = {name: int(value) for name, value in _WHOLE.findall(device[1])} if device is not None else {}
    return PriorityRecord(list(_steps(text)), numbers, file)


def _steps(text: str) -> Iterator[RecordedStep]:
    for match in _STEP.finditer(text):
        kind, body = match[1], match[2]
        names = {}
        numbers = {}
        consumers = []
        for name, quoted, number in _FIELD.findall(body):
            if number:
                numbers[name] = float(number)
            elif name == "consumer_names":
                consumers.append(_content(quoted))
            else:
                names[name] = _content(quoted)
        producer = names.get("producer_name", "")
        if kind == "update_priority":
            fused, unfused = numbers.get("us_fused", 0.0), numbers.get("us_unfused", 0.0)
            yield PriorityStep(producer, tuple(consumers), fused, unfused)
        elif kind == "fusion":
            yield FusionStep(names.get("fusion_name", ""), producer, names.get("consumer_name", ""))
        elif kind == "producer_ineligible":
            yield IneligibleStep(producer, names.get("reason", ""))


def _content(quoted: str) -> str:
    """The text in quotes; escapes that protobuf does not write stay."""
    return unquote(quoted) if bad_escape(quoted) is None else quoted[1:-1]
