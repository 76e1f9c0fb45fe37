"""Several ArrowBatches as one stream of Arrow's C stream interface."""
from cpython.pycapsule cimport PyCapsule_GetPointer, PyCapsule_New
from cpython.ref cimport PyObject, Py_DECREF, Py_INCREF
from libc.errno cimport EINVAL
from libc.stdlib cimport calloc, free
from libc.string cimport memset

from kafkapy._core.bytes.arrow_batch cimport ArrowArray, ArrowBatch, ArrowSchema


cdef class BatchStream:
    """The state of one exported stream: the batches, the index of the next one, and the text of the last error."""

    cdef ArrowBatch template
    cdef list batches
    cdef Py_ssize_t next_index
    cdef bytes last_error


def export_stream(ArrowBatch template not None, batches):
    """Returns a PyCapsule of an ArrowArrayStream over `batches`, which have the columns of `template`.

    The stream keeps the batches alive; no rows can be added to a batch after it was read from the stream. Raises
    MemoryError.
    """
    cdef ArrowArrayStream *stream = <ArrowArrayStream *>calloc(1, sizeof(ArrowArrayStream))
    cdef BatchStream state
    if stream == NULL:
        raise MemoryError()
    capsule = PyCapsule_New(stream, "arrow_array_stream", free_stream_capsule)
    state = BatchStream.__new__(BatchStream)
    state.template, state.batches, state.next_index, state.last_error = template, list(batches), 0, b""
    stream.get_schema, stream.get_next = get_schema, get_next
    stream.get_last_error, stream.release = get_last_error, release_stream
    Py_INCREF(state)                     # owned by the stream until its release
    stream.private_data = <PyObject *>state
    return capsule


cdef int get_schema(ArrowArrayStream *stream, ArrowSchema *out) noexcept with gil:
    cdef BatchStream state = <BatchStream><PyObject *>stream.private_data
    cdef ArrowSchema *schema
    try:
        capsule = state.template.__arrow_c_schema__()
        schema = <ArrowSchema *>PyCapsule_GetPointer(capsule, "arrow_schema")
        out[0] = schema[0]
        schema.release = NULL            # moved: the capsule no longer releases it
        return 0
    except Exception as error:
        state.last_error = str(error).encode()
        return EINVAL


cdef int get_next(ArrowArrayStream *stream, ArrowArray *out) noexcept with gil:
    """Writes the next batch to `out`, or an array without a release callback at the end. Returns 0 or an errno."""
    cdef BatchStream state = <BatchStream><PyObject *>stream.private_data
    cdef ArrowArray *array
    try:
        if state.next_index == len(state.batches):
            memset(out, 0, sizeof(ArrowArray))
            return 0
        _, capsule = state.batches[state.next_index].__arrow_c_array__()
        array = <ArrowArray *>PyCapsule_GetPointer(capsule, "arrow_array")
        out[0] = array[0]
        array.release = NULL             # moved: the capsule no longer releases it
        state.next_index += 1
        return 0
    except Exception as error:
        state.last_error = str(error).encode()
        return EINVAL


cdef const char *get_last_error(ArrowArrayStream *stream) noexcept with gil:
    return <const char *>(<BatchStream><PyObject *>stream.private_data).last_error


cdef void release_stream(ArrowArrayStream *stream) noexcept with gil:
    """Releases the stream and its batches. Any thread may call it."""
    Py_DECREF(<BatchStream><PyObject *>stream.private_data)
    stream.private_data = NULL
    stream.release = NULL


cdef void free_stream_capsule(object capsule) noexcept:
    cdef ArrowArrayStream *stream = <ArrowArrayStream *>PyCapsule_GetPointer(capsule, "arrow_array_stream")
    if stream.release != NULL:
        stream.release(stream)
    free(stream)
