# Actions of a batch, checked and copied in one pass.

cdef fused Integer:
    int32_t
    int64_t

cdef fused Real:
    float
    double


cdef class ActionRows:
    """Holds the actions of a batch, copied from plain arrays of numbers that fit.

    Args:
        low: The least that each number may be: a C-contiguous array of int32 or float32.
        high: The most.
    """

    cdef readonly object array
    cdef object low, high
    cdef bint is_real

    def __init__(self, low, high):
        self.low, self.high = low, high
        self.array = np.zeros_like(low)
        self.is_real = low.dtype == np.float32
        if not (low.flags.c_contiguous and high.flags.c_contiguous and low.shape == high.shape):
            raise APIUsageError(f"ActionRows: expected contiguous bounds of one shape, got {low.shape} and {high.shape}")
        if not low.dtype == high.dtype == (np.float32 if self.is_real else np.int32):
            raise APIUsageError(f"ActionRows: expected bounds of int32 or float32, got {low.dtype} and {high.dtype}")

    def take(self, actions, bint bounded):
        """Copy ``actions`` into ``array``, int32 or int64, or for reals float32 or float64.

        Args:
            actions: Anything.
            bounded: Whether reals must be within the bounds; integers must always.

        Returns:
            False if it is another kind of array, or a number is NaN or out of bounds; then
            ``array`` means nothing.
        """
        if type(actions) is not ndarray or not heads_are_readable:
            return False
        source = <ArrayHead *><PyObject *>actions
        target = <ArrayHead *><PyObject *>self.array
        if not same_shape(source, target) or not is_native(source.dtype):
            return False
        if source.dtype.scalar_type == <PyObject *>(float64_type if self.is_real else int64_type):
            if self.is_real:
                return take_reals(<double *>source.data, target, head_of(self.low), head_of(self.high), bounded)
            return take_integers(<int64_t *>source.data, target, head_of(self.low), head_of(self.high))
        if source.dtype.scalar_type == target.dtype.scalar_type:
            if self.is_real:
                return take_reals(<float *>source.data, target, head_of(self.low), head_of(self.high), bounded)
            return take_integers(<int32_t *>source.data, target, head_of(self.low), head_of(self.high))
        return False


cdef inline ArrayHead *head_of(array):
    return <ArrayHead *><PyObject *>array


cdef inline Py_ssize_t size_of(const ArrayHead *head) noexcept nogil:
    cdef Py_ssize_t size = 1
    for axis in range(head.ndim):
        size *= head.shape[axis]
    return size


cdef bint same_shape(const ArrayHead *source, const ArrayHead *target) noexcept nogil:
    """Whether ``source`` is contiguous and of the shape of ``target``."""
    if source.ndim != target.ndim or source.flags & ALIGNED_AND_CONTIGUOUS != ALIGNED_AND_CONTIGUOUS:
        return False
    for axis in range(target.ndim):
        if source.shape[axis] != target.shape[axis]:
            return False
    return True


cdef bint take_integers(
    const Integer *source, const ArrayHead *array, const ArrayHead *low, const ArrayHead *high
) noexcept nogil:
    """Copy, narrowed; False if any is out of bounds."""
    cdef int32_t *target = <int32_t *>array.data
    cdef const int32_t *least = <const int32_t *>low.data
    cdef const int32_t *most = <const int32_t *>high.data
    cdef int outside = 0
    cdef Py_ssize_t i
    for i in range(size_of(array)):
        outside |= (source[i] < least[i]) | (source[i] > most[i])
        target[i] = <int32_t>source[i]
    return not outside


cdef bint take_reals(
    const Real *source, const ArrayHead *array, const ArrayHead *low, const ArrayHead *high, bint bounded
) noexcept nogil:
    """Copy, rounded; False if any is NaN, or ``bounded`` and out of bounds."""
    cdef float *target = <float *>array.data
    cdef const float *least = <const float *>low.data
    cdef const float *most = <const float *>high.data
    cdef float number  # as the space writes it, in which 0.7 is not above a bound of 0.7
    cdef int nan = 0, outside = 0
    cdef Py_ssize_t i
    for i in range(size_of(array)):
        number = <float>source[i]
        nan |= number != number
        outside |= (number < least[i]) | (number > most[i])
        target[i] = number
    return not (nan or (bounded and outside))
