/* Coin: call a coin that falls on one side more often than on the other.
 *
 * Observation  float[1]: share of tosses so far that came up heads.
 * Actions      Discrete(2): 0 tails, 1 heads. Any other value is heads.
 * Rewards      +1 for a right call, 0 otherwise.
 * Ends         truncation after `tosses` steps.
 */
#include "puffer_draw.h"
#include "puffer_env.h"

typedef struct {
    PufferGame game;
    /* parameters */
    float heads_share;
    int32_t tosses;
    /* metrics */
    float score, perf;
    /* state */
    int32_t heads;
} Coin;

static const char coin_about[] = "Call a coin that falls on one side more often than on the other.";

static const PufferParameter coin_parameters[] = {
    PUFFER_PARAMETER(Coin, heads_share, 0.8, 0, 1, "how often the coin comes up heads"),
    PUFFER_PARAMETER(Coin, tosses, 20, 1, 1000, "tosses per episode"),
};

static const PufferMetric coin_metrics[] = {
    PUFFER_METRIC(Coin, score, "right calls"),
    PUFFER_METRIC(Coin, perf, "share of right calls"),
};

static inline const char *coin_spec(const Coin *env, PufferSpec *spec) {
    (void)env;
    *spec = (PufferSpec){
        .observation_type = PUFFER_FLOAT32,
        .observation_shape = {1},
        .observation_low = 0,
        .observation_high = 1,
        .action_kind = PUFFER_DISCRETE,
        .action_sizes = {2},
        .agents = 1,
        .picture_width = 64,
        .picture_height = 64,
        .frames_per_second = 2,
    };
    return NULL;
}

static inline void coin_observe(Coin *env) {
    const int32_t tossed = env->game.episode_length;
    *(float *)env->game.observations = tossed == 0 ? 0.5f : (float)env->heads / (float)tossed;
}

static inline void coin_reset(Coin *env) {
    env->heads = 0;
    env->score = 0;
    coin_observe(env);
}

static inline PufferOutcome coin_step(Coin *env) {
    const bool calls_heads = *(const int32_t *)env->game.actions != 0;
    const bool is_heads = (float)puffer_random_below(&env->game.rng, 1000) < 1000 * env->heads_share;
    env->heads += is_heads;
    env->game.rewards[0] = calls_heads == is_heads;
    env->score += env->game.rewards[0];
    env->perf = env->score / (float)env->tosses;
    coin_observe(env);
    return env->game.episode_length < env->tosses ? PUFFER_RUNNING : PUFFER_TRUNCATED;
}

static const PufferKey coin_keys[] = {{"left", 0, 0, "tails"}, {"right", 0, 1, "heads"}};

static inline void coin_draw(const Coin *env, PufferCanvas *canvas) {
    draw_clear(canvas, DRAW_NIGHT);
    draw_disc(canvas, 32, 32, 24, env->game.rewards[0] > 0 ? DRAW_CYAN : DRAW_ORANGE);
}

PUFFER_ENV(Coin, coin, PUFFER_KEYS(coin_keys))
