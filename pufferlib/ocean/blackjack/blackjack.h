/* Blackjack: draw cards to come closer to 21 than the dealer, but not above it.
 *
 * The deck is infinite. Numbers count as they are, pictures 10, and an ace 11, or 1 if 11 would be too much.
 * The dealer draws until the sum is 17 or more.
 *
 * Observation  int32[3]: the player's sum, the dealer's open card (1 is an ace, 10 also a picture), and 1 if an
 *              ace of the player counts 11.
 * Actions      Discrete(2): 0 stick, 1 hit. Any other number sticks.
 * Rewards      0 for a hit, -1 for a sum above 21. For sticking 1, 0 or -1 for a win, a draw and a loss. An ace
 *              and a ten as the first two cards are a natural: with sab it always wins, except against another
 *              one, and with natural, but without sab, a win with it is 1.5.
 * Ends         terminal after sticking, and with a sum above 21.
 * Source       Gymnasium's Blackjack-v1, after example 5.1 of Sutton and Barto (2018). A test checks that the
 *              same seed and actions give the same bytes. */
#ifndef BLACKJACK_H
#define BLACKJACK_H

#include "puffer_env.h"
#include "puffer_numpy.h"

enum { BLACKJACK_STICK, BLACKJACK_HIT, BLACKJACK_ACTIONS };
enum { BLACKJACK_BEST = 21, BLACKJACK_DEALER = 17 /* the dealer draws below this sum */ };

/* Cards of one side. Aces count 1 in the sum. */
typedef struct {
    int32_t sum, cards;
    bool has_ace;
} BlackjackHand;

typedef struct {
    PufferGame game;
    /* parameters */
    bool natural, sab;
    /* metrics */
    float score, perf;
    /* state */
    BlackjackHand player, dealer;
    int32_t open; /* card of the dealer */
    PufferGenerator generator;
} Blackjack;

static const char blackjack_about[] = "Come closer to 21 than the dealer: Gymnasium's Blackjack-v1.";

/* clang-format off */
static const PufferParameter blackjack_parameters[] = {
    PUFFER_PARAMETER(Blackjack, natural, false, false, true, "without sab, a win with a natural pays 1.5"),
    PUFFER_PARAMETER(Blackjack, sab, true, false, true, "a natural wins, as in Sutton and Barto's book"),
};

static const PufferMetric blackjack_metrics[] = {
    PUFFER_METRIC(Blackjack, score, "reward of the game"),
    PUFFER_METRIC(Blackjack, perf, "1 for a win, a half for a draw"),
};
/* clang-format on */

static const PufferBounds blackjack_bounds[] = {{0, 31}, {0, 10}, {0, 1}};

static inline const char *blackjack_spec(const Blackjack *env, PufferSpec *spec) {
    (void)env;
    *spec = (PufferSpec){
        .observation_type = PUFFER_INT32,
        .observation_shape = {3},
        .observation_bounds = blackjack_bounds,
        .action_kind = PUFFER_DISCRETE,
        .action_sizes = {BLACKJACK_ACTIONS},
        .agents = 1,
        .picture_width = 320,
        .picture_height = 240,
        .frames_per_second = 4,
    };
    return NULL;
}

/* Draws one of 13 cards, of which four count 10. */
static inline int32_t blackjack_draw_card(Blackjack *env, BlackjackHand *hand) {
    const int32_t rank = (int32_t)puffer_integer(&env->generator, 13) + 1, card = rank < 10 ? rank : 10;
    hand->sum += card;
    hand->cards++;
    hand->has_ace |= card == 1;
    return card;
}

static inline bool blackjack_is_soft(const BlackjackHand *hand) {
    return hand->has_ace && hand->sum + 10 <= BLACKJACK_BEST;
}

static inline int32_t blackjack_sum(const BlackjackHand *hand) {
    return hand->sum + (blackjack_is_soft(hand) ? 10 : 0);
}

/* The sum, or 0 if it is too much. */
static inline int32_t blackjack_value(const BlackjackHand *hand) {
    return hand->sum > BLACKJACK_BEST ? 0 : blackjack_sum(hand);
}

static inline bool blackjack_is_natural(const BlackjackHand *hand) {
    return hand->cards == 2 && hand->has_ace && hand->sum == 11;
}

static inline void blackjack_observe(Blackjack *env) {
    int32_t *observation = env->game.observations;
    observation[0] = blackjack_sum(&env->player);
    observation[1] = env->open;
    observation[2] = blackjack_is_soft(&env->player);
}

static inline void blackjack_reset(Blackjack *env) {
    env->player = env->dealer = (BlackjackHand){0};
    env->open = blackjack_draw_card(env, &env->dealer);
    blackjack_draw_card(env, &env->dealer);
    blackjack_draw_card(env, &env->player);
    blackjack_draw_card(env, &env->player);
    /* Gymnasium draws the suit of the open card, and which picture a ten shows. */
    puffer_integer(&env->generator, 4);
    if (env->open == 10) puffer_integer(&env->generator, 3);
    blackjack_observe(env);
}

/* Plays the dealer's hand and returns the reward. */
static inline float blackjack_stick(Blackjack *env) {
    while (blackjack_sum(&env->dealer) < BLACKJACK_DEALER) blackjack_draw_card(env, &env->dealer);
    const int32_t ours = blackjack_value(&env->player), theirs = blackjack_value(&env->dealer);
    const float reward = (float)(ours > theirs) - (float)(ours < theirs);
    if (!blackjack_is_natural(&env->player)) return reward;
    if (env->sab) return blackjack_is_natural(&env->dealer) ? reward : 1;
    return env->natural && reward == 1 ? 1.5f : reward;
}

static inline PufferOutcome blackjack_step(Blackjack *env) {
    const bool hits = *(const int32_t *)env->game.actions == BLACKJACK_HIT;
    if (hits) blackjack_draw_card(env, &env->player);
    const bool is_over = !hits || env->player.sum > BLACKJACK_BEST;
    env->game.rewards[0] = !hits ? blackjack_stick(env) : is_over ? -1 : 0;
    blackjack_observe(env);
    if (!is_over) return PUFFER_RUNNING;
    env->score = env->game.rewards[0];
    env->perf = env->score > 0 ? 1 : env->score < 0 ? 0 : 0.5f;
    return PUFFER_TERMINATED;
}

#endif
