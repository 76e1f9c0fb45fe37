"""The buffer through which the log cleaner reads a segment."""

from kafkapy.storage.log_cleaner_reader import SMALLEST_BUFFER, CleanerBuffer


def test_a_file_that_is_shorter_than_the_segment_is_read_to_its_end(tmp_path):
    path = tmp_path / "segment"
    path.write_bytes(b"x" * 5000)
    counted, seen = [], []

    def visit(view, length):
        seen.append(length)
        return length or None

    CleanerBuffer(1, counted.append).read(str(path), 0, 9000, visit)
    assert seen == counted == [SMALLEST_BUFFER, 5000 - SMALLEST_BUFFER, 0]
