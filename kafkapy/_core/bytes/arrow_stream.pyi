from collections.abc import Iterable

from kafkapy._core.bytes.arrow_batch import ArrowBatch

def export_stream(template: ArrowBatch, batches: Iterable[ArrowBatch]) -> object: ...
