"""Gradient steps of multilayer perceptrons, in C."""

from libc.stdint cimport int32_t, int64_t, uint8_t, uintptr_t
from libc.string cimport memcpy, memset

import numpy as np

from pufferlib.errors import APIUsageError

cdef extern from "puffer_perceptron.h":
    enum:
        PUFFER_MAX_LAYERS
        PUFFER_MAX_TRUNKS
    ctypedef enum PufferActivation:
        PUFFER_RELU, PUFFER_TANH, PUFFER_ELU
    ctypedef enum PufferEncoding:
        PUFFER_SCALED, PUFFER_LOGARITHMS, PUFFER_LABELS
    ctypedef struct PufferInput:
        PufferEncoding encoding
        char type
        int32_t offset, count, values
        float scale
        int64_t low
    ctypedef struct PufferParameter:
        int rows, columns
        long stride
        float *gradient
        float *weights
        float *first
        float *second
        float *step
    ctypedef struct PufferLearner:
        PufferParameter weight, bias
    ctypedef struct PufferLearnerTrunk:
        PufferLearner *layers
        int num_layers
    ctypedef struct PufferPerceptron:
        PufferLearnerTrunk *trunks
        PufferParameter log_std
        PufferInput *inputs
        int32_t *float_places
        int32_t *label_places
        float scale
        int row_bytes, num_inputs, num_floats, num_labels, max_chosen, num_trunks, num_params
    ctypedef struct PufferAdam:
        float rate, beta1, beta2, epsilon
    void *puffer_zeros(size_t count, size_t size)
    bint puffer_parameter_init(PufferParameter *parameter, int rows, int columns)
    bint puffer_learner_init(PufferLearner *layer, int floats, int inputs, int outputs, PufferActivation activation)
    bint puffer_perceptron_init(PufferPerceptron *net)
    bint puffer_perceptron_reserve(PufferPerceptron *net, long rows)
    void puffer_perceptron_free(PufferPerceptron *net) noexcept
    void puffer_perceptron_forward(
        PufferPerceptron *net, const uint8_t *observations, long rows, float *params, float *values) noexcept nogil
    void puffer_perceptron_backward(
        PufferPerceptron *net, long rows, const float *d_params, const float *d_values) noexcept nogil
    void puffer_perceptron_step(PufferPerceptron *net, float longest, const PufferAdam *adam) noexcept nogil

cdef dict ACTIVATIONS = {"relu": PUFFER_RELU, "tanh": PUFFER_TANH, "elu": PUFFER_ELU}
cdef dict ENCODINGS = {"scaled": PUFFER_SCALED, "logarithms": PUFFER_LOGARITHMS, "labels": PUFFER_LABELS}
KNOWN_ACTIVATIONS = tuple(ACTIVATIONS)


cdef inline float *floats(tensor):
    return <float *><uintptr_t>tensor.data_ptr()


cdef inline int check(bint is_complete) except -1:
    if not is_complete:
        raise MemoryError
    return 0


cdef int32_t *copied(places) except NULL:
    cdef const int32_t[::1] given = np.ascontiguousarray(places, np.int32)
    cdef int32_t *to = <int32_t *>puffer_zeros(len(given), sizeof(int32_t))
    check(to != NULL)
    if len(given):
        memcpy(to, &given[0], len(given) * sizeof(int32_t))
    return to


cdef class Perceptron:
    """Network whose parameters are torch's, with gradients and steps in C.

    All tensors must be float32, contiguous and on the CPU. Only the sizes of parameters are checked.

    Args:
        spec: Description of the network, a ``pufferlib.models.engine.NetworkSpec``, without images, memories and
            normalization layers.

    Attributes:
        parameters: Parameters, in the order of ``bind``.
    """

    cdef PufferPerceptron net
    cdef readonly list parameters

    def __cinit__(self):
        memset(&self.net, 0, sizeof(self.net))

    def __init__(self, spec):
        puffer_perceptron_free(&self.net)
        self.parameters = []
        self.net.row_bytes = spec.observation_dtype.itemsize * int(np.prod(spec.observation_shape))
        self.add_inputs(spec)
        for i, trunk in enumerate(spec.trunks):
            self.add_trunk(&self.net.trunks[i], trunk)
        self.net.num_trunks, self.net.num_params = len(spec.trunks), spec.num_params
        if spec.log_std is not None:
            check(puffer_parameter_init(&self.net.log_std, 1, spec.log_std.numel()))
            self.parameters.append(spec.log_std)
        check(puffer_perceptron_init(&self.net))

    cdef int add_inputs(self, spec) except -1:
        cdef PufferInput *to
        self.net.inputs = <PufferInput *>puffer_zeros(len(spec.inputs), sizeof(PufferInput))
        check(self.net.inputs != NULL)
        self.net.num_inputs = len(spec.inputs)
        for i, each in enumerate(spec.inputs):
            to = &self.net.inputs[i]
            to.encoding, to.type, to.offset = ENCODINGS[each.encoding], ord(each.type), each.offset
            to.count, to.scale, to.low, to.values = each.size, each.scale, each.low, each.values
            if each.encoding == "labels":
                self.net.max_chosen += each.size
        first, labels = spec.trunks[0].layers[0].matrix, spec.trunks[0].labels
        self.net.float_places, self.net.num_floats = copied(first.places), len(first.places)
        if labels is not None:
            self.net.label_places, self.net.num_labels = copied(labels.places), len(labels.places)
        return 0

    cdef int add_trunk(self, PufferLearnerTrunk *to, trunk) except -1:
        matrices = [*(layer.matrix for layer in trunk.layers), trunk.decoder]
        activations = [*(layer.activation for layer in trunk.layers), "relu"]  # the decoder has none
        for i, (matrix, activation) in enumerate(zip(matrices, activations, strict=True)):
            (outputs, inputs), (bias,) = matrix.weight.shape, matrix.biases
            floats = len(matrix.places)
            check(puffer_learner_init(&to.layers[i], floats, inputs, outputs, ACTIVATIONS[activation]))
            self.parameters += [matrix.weight, bias]
        to.num_layers = len(matrices)
        return 0

    def __dealloc__(self):
        puffer_perceptron_free(&self.net)

    cdef list places(self):
        """Return the address of each parameter in C, in the order of ``parameters``."""
        cdef PufferLearner *layer
        found = []
        for i in range(self.net.num_trunks):
            for j in range(self.net.trunks[i].num_layers):
                layer = &self.net.trunks[i].layers[j]
                found += [<uintptr_t>&layer.weight, <uintptr_t>&layer.bias]
        return [*found, <uintptr_t>&self.net.log_std][:len(self.parameters)]

    def bind(self, states):
        """Use the current memory of the parameters, and their states of Adam.

        Args:
            states: Dict with ``step``, ``exp_avg`` and ``exp_avg_sq`` for each parameter.
        """
        for place, parameter, state in zip(self.places(), self.parameters, states, strict=True):
            self.bind_one(<PufferParameter *><uintptr_t>place, parameter, state)

    def gradients(self):
        """Return the gradients of the last step, after clipping, in the order of ``parameters``."""
        cdef PufferParameter *each
        cdef const float[:, ::1] rows
        found = []
        for place, parameter in zip(self.places(), self.parameters, strict=True):
            each = <PufferParameter *><uintptr_t>place
            rows = <const float[:each.rows, :each.stride]>each.gradient
            found.append(parameter.new_tensor(np.multiply(rows[:, :each.columns], self.net.scale)).view(parameter.shape))
        return found

    cdef int bind_one(self, PufferParameter *to, parameter, state) except -1:
        tensors = parameter, state["exp_avg"], state["exp_avg_sq"]
        if any(tensor.numel() != to.rows * to.columns or not tensor.is_contiguous() for tensor in tensors):
            raise APIUsageError(
                f"Perceptron: parameters must keep their shape and memory layout, got {tuple(parameter.shape)} with "
                f"strides {parameter.stride()}"
            )
        to.weights, to.first, to.second = floats(parameter), floats(tensors[1]), floats(tensors[2])
        to.step = floats(state["step"])
        return 0

    def forward(self, observations, params, values):
        """Compute ``params`` ``(rows, num_params)`` and ``values`` ``(rows,)`` of observations ``(rows, *shape)``."""
        cdef long rows = observations.shape[0]
        cdef const uint8_t *given = <const uint8_t *><uintptr_t>observations.data_ptr()
        cdef float *to = floats(params)
        cdef float *to_values = floats(values)
        check(puffer_perceptron_reserve(&self.net, rows))
        with nogil:
            puffer_perceptron_forward(&self.net, given, rows, to, to_values)

    def backward(self, d_params, d_values):
        """Compute all gradients after ``forward``, from those of its results."""
        cdef long rows = d_values.numel()
        cdef const float *given = floats(d_params)
        cdef const float *given_values = floats(d_values)
        with nogil:
            puffer_perceptron_backward(&self.net, rows, given, given_values)

    def step(self, float max_grad_norm, float learning_rate, float beta1, float beta2, float epsilon):
        """Take a step of Adam. Longer gradients are scaled to the length ``max_grad_norm``, unless it is 0."""
        cdef PufferAdam adam
        adam.rate, adam.beta1, adam.beta2, adam.epsilon = learning_rate, beta1, beta2, epsilon
        with nogil:
            puffer_perceptron_step(&self.net, max_grad_norm, &adam)
