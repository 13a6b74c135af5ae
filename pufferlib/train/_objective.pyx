"""The objective of PPO on a minibatch and its derivatives, in C."""

from libc.stdint cimport int64_t, uint8_t, uintptr_t

cdef extern from "puffer_objective.h":
    ctypedef struct PufferCoefficients:
        float clip_coef, vf_clip_coef, vf_coef, ent_coef
        bint norm_adv
    ctypedef struct PufferSteps:
        int64_t steps
        const uint8_t *mask
        const float *log_probs
        const float *entropies
        const float *values
        const float *old_log_probs
        const float *old_values
        const float *advantages
        const float *returns
    ctypedef struct PufferFigures:
        double total, policy, value, entropy, approx_kl, clip_fraction
    int64_t puffer_objective(
        const PufferSteps *batch, const PufferCoefficients *coefficients, PufferFigures *figures, float *d_log_probs,
        float *d_values)


cdef inline const float *floats(tensor):
    return <const float *><uintptr_t>tensor.data_ptr()


def objective(log_probs, entropies, values, batch, config, d_log_probs, d_values):
    """Write the derivatives of the objective by ``log_probs`` and ``values``; the caller sees to devices and dtypes.

    Args:
        log_probs: Of the actions now; like all tensors here contiguous float32, on the CPU, of equally many elements.
        entropies: Of the policy now.
        values: As estimated now.
        batch: A ``Minibatch``.
        config: ``clip_coef``, ``vf_clip_coef``, ``vf_coef``, ``ent_coef`` and ``norm_adv`` are read.
        d_log_probs: Is written.
        d_values: Is written.

    Returns:
        How many steps count, and the figures of ``Losses`` in their order.
    """
    cdef PufferSteps steps
    cdef PufferCoefficients coefficients
    cdef PufferFigures figures
    steps.steps = values.numel()
    steps.mask = <const uint8_t *><uintptr_t>(0 if batch.mask is None else batch.mask.data_ptr())
    steps.log_probs, steps.entropies, steps.values = floats(log_probs), floats(entropies), floats(values)
    steps.old_log_probs, steps.old_values = floats(batch.log_probs), floats(batch.values)
    steps.advantages, steps.returns = floats(batch.advantages), floats(batch.returns)
    coefficients.clip_coef, coefficients.vf_clip_coef = config.clip_coef, config.vf_clip_coef
    coefficients.vf_coef, coefficients.ent_coef = config.vf_coef, config.ent_coef
    coefficients.norm_adv = config.norm_adv
    count = puffer_objective(&steps, &coefficients, &figures, <float *>floats(d_log_probs), <float *>floats(d_values))
    return count, (
        figures.total, figures.policy, figures.value, figures.entropy, figures.approx_kl, figures.clip_fraction
    )
