"""Loss of PPO on a minibatch and its derivatives, in C."""

from libc.stdint cimport int64_t, uint8_t, uintptr_t

cdef extern from "puffer_objective.h":
    ctypedef struct PufferCoefficients:
        float clip_coef, vf_clip_coef, vf_coef, ent_coef
        bint norm_adv
    ctypedef struct PufferSteps:
        int64_t steps
        const uint8_t *mask
        const float *weights
        const float *log_probs
        const float *entropies
        const float *values
        const float *old_log_probs
        const float *old_values
        const float *advantages
        const float *returns
    ctypedef struct PufferFigures:
        double total, policy, value, entropy, approx_kl, clip_fraction
    void puffer_objective(
        const PufferSteps *batch, const PufferCoefficients *coefficients, PufferFigures *figures, float *d_log_probs,
        float *d_entropies, float *d_values)


cdef inline float *floats(tensor):
    return <float *><uintptr_t>(0 if tensor is None else tensor.data_ptr())


def objective(log_probs, entropies, values, batch, config, d_log_probs, d_entropies, d_values):
    """Compute the loss and write its derivatives.

    All tensors must be float32, contiguous, on the CPU, with one element per step. This is not checked.

    Args:
        log_probs: Current log-probabilities of the actions.
        entropies: Current entropies of the policy.
        values: Current value estimates.
        batch: Minibatch.
        config: Settings, of which ``clip_coef``, ``vf_clip_coef``, ``vf_coef``, ``ent_coef`` and ``norm_adv`` are read.
        d_log_probs: Output for the derivative with respect to ``log_probs``.
        d_entropies: Output for the derivative with respect to ``entropies``.
        d_values: Output for the derivative with respect to ``values``.

    Returns:
        Values of ``Losses``, in their order.
    """
    cdef PufferSteps steps
    cdef PufferCoefficients coefficients
    cdef PufferFigures figures
    steps.steps = values.numel()
    steps.mask = <const uint8_t *><uintptr_t>(0 if batch.mask is None else batch.mask.data_ptr())
    steps.weights = floats(batch.weights)
    steps.log_probs, steps.entropies, steps.values = floats(log_probs), floats(entropies), floats(values)
    steps.old_log_probs, steps.old_values = floats(batch.log_probs), floats(batch.values)
    steps.advantages, steps.returns = floats(batch.advantages), floats(batch.returns)
    coefficients.clip_coef, coefficients.vf_clip_coef = config.clip_coef, config.vf_clip_coef
    coefficients.vf_coef, coefficients.ent_coef = config.vf_coef, config.ent_coef
    coefficients.norm_adv = config.norm_adv
    puffer_objective(&steps, &coefficients, &figures, floats(d_log_probs), floats(d_entropies), floats(d_values))
    return (
        figures.total, figures.policy, figures.value, figures.entropy, figures.approx_kl, figures.clip_fraction
    )
