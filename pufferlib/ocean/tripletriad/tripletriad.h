/* Triple Triad: two players take turns laying cards from hands of five, each with a value on each of its four
 * sides, on a 3 x 3 board. The player who owns more cards at the end wins. The agent starts and therefore
 * lays five cards. A rival that plays random cards on random cells answers within the same step, or a second
 * agent takes turns with it.
 *
 * A card that is laid captures each neighbour of the rival whose touching value is lower than its own.
 * Captured cards capture no others. Every card counts for its owner, on the board and in the hand: 10 points
 * in all.
 *
 * Observation  float[147] in [0, 1], values as fractions of max_value:
 *              - 14: mask of the actions, 1 if legal
 *              - 36 and 36: the own and the rival's cards on the board, cell by cell, north, south, east,
 *                west, 0 if there is none
 *              - 20 and 20: the own and the rival's hand, 0 for cards that were laid
 *              - 4: the selected card
 *              - 2: the own and the rival's points, over 10
 *              - 1: fraction of actions left
 *              - 9: number of cards that the selected one would capture on each cell, over 4
 *              - 5: the maximum number of cards that each one of the hand would capture, over 4
 * Actions      Discrete(14): 0 to 4 select a card of the hand, 5 to 13 lay it on a cell, row by row. Illegal:
 *              selecting a card that is laid or already selected, laying on a card, laying without a
 *              selection, and any other number. An illegal action changes nothing. With two players, the
 *              player who is not to move can only wait: 0 is legal, and any number does nothing.
 * Rewards      1 for a win, -1 for a loss, 0 for a draw, -select_cost for a selection, -illegal_cost for an
 *              illegal action, another -1 for running out of actions, reward_per_card for each card captured,
 *              minus that for each card lost.
 * Ends         terminal when the board is full, and after max_actions actions. The limit is part of the game
 *              and observed, so a player who runs out of actions loses.
 * Players      1: an agent against the rival. 2: an agent for each hand, for self-play. The first one starts,
 *              both are present in every step, each sees its own cards first and its own limit, and one of
 *              them waits.
 * Source       The card game of Final Fantasy VIII (Square, 1999), with its basic rule, and the numbers of
 *              PufferLib's tripletriad. There running out of actions sets no flag, and the mask only marks
 *              occupied cells.
 *
 * A game has 200 bytes in addition to the common head. */
#ifndef TRIPLETRIAD_H
#define TRIPLETRIAD_H

#include "puffer_env.h"

enum { TRIPLETRIAD_CELLS = 9, TRIPLETRIAD_HAND = 5, TRIPLETRIAD_SIDES = 4, TRIPLETRIAD_ACTIONS = 14 };
enum { TRIPLETRIAD_OWN, TRIPLETRIAD_RIVAL, TRIPLETRIAD_NOBODY };
enum {
    TRIPLETRIAD_NORTH,
    TRIPLETRIAD_SOUTH,
    TRIPLETRIAD_EAST,
    TRIPLETRIAD_WEST
}; /* opposites differ in bit 0 */

/* Offsets of the parts of an observation. */
enum {
    TRIPLETRIAD_LEGAL = 0,
    TRIPLETRIAD_BOARD = TRIPLETRIAD_LEGAL + TRIPLETRIAD_ACTIONS,
    TRIPLETRIAD_HANDS = TRIPLETRIAD_BOARD + 2 * TRIPLETRIAD_CELLS * TRIPLETRIAD_SIDES,
    TRIPLETRIAD_SELECTED = TRIPLETRIAD_HANDS + 2 * TRIPLETRIAD_HAND * TRIPLETRIAD_SIDES,
    TRIPLETRIAD_POINTS = TRIPLETRIAD_SELECTED + TRIPLETRIAD_SIDES,
    TRIPLETRIAD_CLOCK = TRIPLETRIAD_POINTS + 2,
    TRIPLETRIAD_GAINS = TRIPLETRIAD_CLOCK + 1,
    TRIPLETRIAD_MOST = TRIPLETRIAD_GAINS + TRIPLETRIAD_CELLS,
    TRIPLETRIAD_OBSERVED = TRIPLETRIAD_MOST + TRIPLETRIAD_HAND,
};

typedef struct {
    uint8_t values[TRIPLETRIAD_SIDES];
} TripleTriadCard;

typedef struct {
    PufferGame game;
    /* parameters */
    int32_t max_value, max_actions, players;
    float select_cost, illegal_cost, reward_per_card;
    /* metrics */
    float score, perf, illegal, out_of_time;
    /* state */
    TripleTriadCard hands[2][TRIPLETRIAD_HAND];
    TripleTriadCard board[TRIPLETRIAD_CELLS];
    uint8_t owners[TRIPLETRIAD_CELLS];
    uint8_t gains[TRIPLETRIAD_HAND][TRIPLETRIAD_CELLS]; /* captures by each own card on each cell */
    uint8_t in_hand[2];                                 /* bit i: card i is not laid yet */
    int8_t points[2];
    int8_t selected;         /* selected card of the player to move, or -1 */
    uint8_t mover;           /* player to move: always the own one with one agent */
    uint16_t empty;          /* bit i: cell i is empty */
    uint16_t placed, taken;  /* cells that changed in the last step, for rendering */
    int32_t illegal_actions; /* in this episode */
    int32_t played[2];       /* number of actions of each of two agents */
} TripleTriad;

static const char tripletriad_about[] = "Lay cards next to the rival's weaker ones to take them.";

/* clang-format off */
static const PufferParameter tripletriad_parameters[] = {
    PUFFER_PARAMETER(TripleTriad, max_value, 7, 1, 10, "values of cards are drawn from 1 to this"),
    PUFFER_PARAMETER(TripleTriad, max_actions, 30, 10, 10000, "actions after which the game is lost"),
    PUFFER_PARAMETER(TripleTriad, players, 1, 1, 2, "agents of a game: 1 plays against the rival, 2 against each other"),
    PUFFER_PARAMETER(TripleTriad, select_cost, 0.1, 0, 1, "what a selection costs"),
    PUFFER_PARAMETER(TripleTriad, illegal_cost, 0.1, 0, 1, "what an illegal action costs"),
    PUFFER_PARAMETER(TripleTriad, reward_per_card, 0, 0, 1, "reward for taking a card, and cost of losing one"),
};

static const PufferMetric tripletriad_metrics[] = {
    PUFFER_METRIC(TripleTriad, score, "points of the first agent at the end, 0 to 10, over 5 wins; 0 if its actions ran out, 10 if those of the second ran out"),
    PUFFER_METRIC(TripleTriad, perf, "share of games that the first agent won"),
    PUFFER_METRIC(TripleTriad, illegal, "share of actions that are illegal"),
    PUFFER_METRIC(TripleTriad, out_of_time, "share of games in which the actions ran out"),
};
/* clang-format on */

/* The cells to the north, south, east and west, or -1. */
static const int8_t tripletriad_neighbours[TRIPLETRIAD_CELLS][TRIPLETRIAD_SIDES] = {
    {-1, 3, 1, -1}, {-1, 4, 2, 0},  {-1, 5, -1, 1}, {0, 6, 4, -1},  {1, 7, 5, 3},
    {2, 8, -1, 4},  {3, -1, 7, -1}, {4, -1, 8, 6},  {5, -1, -1, 7},
};

static inline const char *tripletriad_spec(const TripleTriad *env, PufferSpec *spec) {
    *spec = (PufferSpec){
        .observation_type = PUFFER_FLOAT32,
        .observation_shape = {TRIPLETRIAD_OBSERVED},
        .observation_low = 0,
        .observation_high = 1,
        .action_kind = PUFFER_DISCRETE,
        .action_sizes = {TRIPLETRIAD_ACTIONS},
        .action_mask = {.offset = TRIPLETRIAD_LEGAL, .size = TRIPLETRIAD_ACTIONS},
        .agents = env->players,
        .picture_width = 720,
        .picture_height = 600,
        .frames_per_second = 3,
    };
    return NULL;
}

/* ---- Observation ------------------------------------------------------------------------------- */

static inline void tripletriad_show_card(const TripleTriad *env, int32_t at, TripleTriadCard card) {
    float *observation = (float *)env->game.observations + at;
    const float unit = 1.0f / (float)env->max_value;
    for (int32_t side = 0; side < TRIPLETRIAD_SIDES; side++) {
        observation[side] = puffer_min((float)card.values[side] * unit, 1);
    }
}

static inline void tripletriad_hide_card(const TripleTriad *env, int32_t at) {
    memset((float *)env->game.observations + at, 0, TRIPLETRIAD_SIDES * sizeof(float));
}

static inline int32_t tripletriad_place_of(int32_t owner, int32_t cell) {
    return TRIPLETRIAD_BOARD + TRIPLETRIAD_SIDES * (TRIPLETRIAD_CELLS * owner + cell);
}

static inline int32_t tripletriad_hand_of(int32_t player, int32_t card) {
    return TRIPLETRIAD_HANDS + TRIPLETRIAD_SIDES * (TRIPLETRIAD_HAND * player + card);
}

/* Bit i: action i is legal. */
static inline uint32_t tripletriad_legal(const TripleTriad *env) {
    const uint32_t in_hand = env->in_hand[env->mover];
    if (env->selected < 0) return in_hand;
    return (in_hand & ~(1u << env->selected)) | (uint32_t)env->empty << TRIPLETRIAD_HAND;
}

static inline void tripletriad_show_legal(const TripleTriad *env) {
    float *observation = (float *)env->game.observations + TRIPLETRIAD_LEGAL;
    const uint32_t legal = tripletriad_legal(env);
    for (int32_t action = 0; action < TRIPLETRIAD_ACTIONS; action++) {
        observation[action] = (float)(legal >> action & 1);
    }
}

static inline void tripletriad_show_numbers(const TripleTriad *env) {
    float *observation = env->game.observations;
    const int32_t left = env->max_actions - env->game.episode_length;
    observation[TRIPLETRIAD_POINTS] = 0.1f * (float)env->points[TRIPLETRIAD_OWN];
    observation[TRIPLETRIAD_POINTS + 1] = 0.1f * (float)env->points[TRIPLETRIAD_RIVAL];
    observation[TRIPLETRIAD_CLOCK] = (float)left / (float)env->max_actions;
}

static inline void tripletriad_show_gains(const TripleTriad *env) {
    float *observation = (float *)env->game.observations + TRIPLETRIAD_GAINS;
    for (int32_t cell = 0; cell < TRIPLETRIAD_CELLS; cell++) {
        observation[cell] = env->selected < 0 ? 0 : 0.25f * (float)env->gains[env->selected][cell];
    }
}

/* ---- The game ----------------------------------------------------------------------------------- */

static inline void tripletriad_deal(TripleTriad *env) {
    for (int32_t card = 0; card < 2 * TRIPLETRIAD_HAND; card++) {
        const int32_t player = card >= TRIPLETRIAD_HAND, place = card % TRIPLETRIAD_HAND;
        TripleTriadCard *dealt = &env->hands[player][place];
        for (int32_t side = 0; side < TRIPLETRIAD_SIDES; side++) {
            dealt->values[side] = (uint8_t)(1 + puffer_random_below(&env->game.rng, env->max_value));
        }
        tripletriad_show_card(env, tripletriad_hand_of(player, place), *dealt);
    }
}

static inline void tripletriad_capture(TripleTriad *env, int32_t player, int32_t cell) {
    env->owners[cell] = (uint8_t)player;
    env->points[player]++;
    env->points[!player]--;
    env->taken |= (uint16_t)(1 << cell);
    env->game.rewards[0] += player == TRIPLETRIAD_OWN ? env->reward_per_card : -env->reward_per_card;
    if (env->players == 2) {
        env->game.rewards[1] += player == TRIPLETRIAD_OWN ? -env->reward_per_card : env->reward_per_card;
    }
    tripletriad_hide_card(env, tripletriad_place_of(!player, cell));
    tripletriad_show_card(env, tripletriad_place_of(player, cell), env->board[cell]);
}

static inline void tripletriad_place_card(TripleTriad *env, int32_t player, int32_t index, int32_t cell) {
    const TripleTriadCard card = env->hands[player][index];
    env->board[cell] = card;
    env->owners[cell] = (uint8_t)player;
    env->in_hand[player] &= (uint8_t)~(1 << index);
    env->empty &= (uint16_t)~(1 << cell);
    env->placed |= (uint16_t)(1 << cell);
    tripletriad_hide_card(env, tripletriad_hand_of(player, index));
    tripletriad_show_card(env, tripletriad_place_of(player, cell), card);
    for (int32_t side = 0; side < TRIPLETRIAD_SIDES; side++) {
        const int32_t neighbour = tripletriad_neighbours[cell][side];
        if (neighbour < 0 || env->owners[neighbour] != !player) continue;
        if (card.values[side] > env->board[neighbour].values[side ^ 1])
            tripletriad_capture(env, player, neighbour);
    }
}

/* Counts the cards that each card in the hand of `player` would capture on an empty cell. */
static inline void tripletriad_count_captures_at(TripleTriad *env, int32_t player, int32_t cell) {
    uint8_t touching[TRIPLETRIAD_SIDES];
    for (int32_t side = 0; side < TRIPLETRIAD_SIDES; side++) {
        const int32_t neighbour = tripletriad_neighbours[cell][side];
        const bool rival = neighbour >= 0 && env->owners[neighbour] == !player;
        touching[side] = rival ? env->board[neighbour].values[side ^ 1] : UINT8_MAX;
    }
    for (int32_t card = 0; card < TRIPLETRIAD_HAND; card++) {
        const TripleTriadCard *own = &env->hands[player][card];
        int32_t gain = 0;
        for (int32_t side = 0; side < TRIPLETRIAD_SIDES; side++) {
            gain += own->values[side] > touching[side] ? 1 : 0;
        }
        env->gains[card][cell] = (uint8_t)gain;
    }
}

/* Counts them for all cells, and writes the maximum for each card. */
static inline void tripletriad_count_captures(TripleTriad *env, int32_t player, float *observation) {
    memset(env->gains, 0, sizeof env->gains);
    for (int32_t cell = 0; cell < TRIPLETRIAD_CELLS; cell++) {
        if (env->empty >> cell & 1) tripletriad_count_captures_at(env, player, cell);
    }
    for (int32_t card = 0; card < TRIPLETRIAD_HAND; card++) {
        uint8_t most = 0;
        for (int32_t cell = 0; cell < TRIPLETRIAD_CELLS; cell++) {
            if (env->gains[card][cell] > most) most = env->gains[card][cell];
        }
        observation[TRIPLETRIAD_MOST + card] = env->in_hand[player] >> card & 1 ? 0.25f * (float)most : 0;
    }
}

/* ---- Two agents ------------------------------------------------------------------------------------ */

/* Writes the cards as agent `own` sees them. Its row starts at `row` of the observation. */
static inline void tripletriad_show_cards_to(const TripleTriad *env, int32_t own, int32_t row) {
    for (int32_t cell = 0; cell < TRIPLETRIAD_CELLS; cell++) {
        const int32_t owner = env->owners[cell];
        if (owner == TRIPLETRIAD_NOBODY) continue;
        tripletriad_show_card(env, row + tripletriad_place_of(owner ^ own, cell), env->board[cell]);
    }
    for (int32_t card = 0; card < 2 * TRIPLETRIAD_HAND; card++) {
        const int32_t player = card >= TRIPLETRIAD_HAND, place = card % TRIPLETRIAD_HAND;
        if (!(env->in_hand[player] >> place & 1)) continue;
        tripletriad_show_card(env, row + tripletriad_hand_of(player ^ own, place), env->hands[player][place]);
    }
}

/* Writes both rows completely. Only the player to move has a choice. */
static inline void tripletriad_observe_of_two(TripleTriad *env) {
    memset(env->game.observations, 0, 2 * TRIPLETRIAD_OBSERVED * sizeof(float));
    for (int32_t own = 0; own < 2; own++) {
        const int32_t row = TRIPLETRIAD_OBSERVED * own;
        float *observation = (float *)env->game.observations + row;
        const bool acts = own == env->mover, chose = acts && env->selected >= 0;
        const uint32_t legal = acts ? tripletriad_legal(env) : 1;
        for (int32_t action = 0; action < TRIPLETRIAD_ACTIONS; action++) {
            observation[TRIPLETRIAD_LEGAL + action] = (float)(legal >> action & 1);
        }
        tripletriad_show_cards_to(env, own, row);
        observation[TRIPLETRIAD_POINTS] = 0.1f * (float)env->points[own];
        observation[TRIPLETRIAD_POINTS + 1] = 0.1f * (float)env->points[!own];
        observation[TRIPLETRIAD_CLOCK] =
            (float)(env->max_actions - env->played[own]) / (float)env->max_actions;
        tripletriad_count_captures(env, own, observation);
        if (!chose) continue;
        tripletriad_show_card(env, row + TRIPLETRIAD_SELECTED, env->hands[own][env->selected]);
        for (int32_t cell = 0; cell < TRIPLETRIAD_CELLS; cell++) {
            observation[TRIPLETRIAD_GAINS + cell] = 0.25f * (float)env->gains[env->selected][cell];
        }
    }
}

static inline void tripletriad_act_of_two(TripleTriad *env, int32_t agent, int32_t action) {
    const bool known = action >= 0 && action < TRIPLETRIAD_ACTIONS;
    env->played[agent]++;
    if (!known || !(tripletriad_legal(env) >> action & 1)) {
        env->illegal_actions++;
        env->game.rewards[agent] -= env->illegal_cost;
    } else if (action < TRIPLETRIAD_HAND) {
        env->selected = (int8_t)action;
        env->game.rewards[agent] -= env->select_cost;
    } else {
        tripletriad_place_card(env, agent, env->selected, action - TRIPLETRIAD_HAND);
        env->selected = -1;
        env->mover = !agent;
    }
}

static inline PufferOutcome tripletriad_step_of_two(TripleTriad *env) {
    const int32_t agent = env->mover;
    tripletriad_act_of_two(env, agent, ((const int32_t *)env->game.actions)[agent]);
    tripletriad_observe_of_two(env);
    const bool complete = env->empty == 0;
    if (!complete && env->played[agent] < env->max_actions) return PUFFER_RUNNING;
    const int32_t lead = env->points[0] - env->points[1];
    const int32_t result = complete ? (lead > 0) - (lead < 0) : agent == 0 ? -1 : 1;
    env->game.rewards[0] += (float)result;
    env->game.rewards[1] -= (float)result;
    env->score = complete ? env->points[0] : result > 0 ? 2 * TRIPLETRIAD_HAND : 0;
    env->perf = result > 0;
    env->out_of_time = !complete;
    env->illegal = (float)env->illegal_actions / (float)env->game.episode_length;
    return PUFFER_TERMINATED;
}

/* ---- One agent -------------------------------------------------------------------------------------- */

static inline void tripletriad_reset(TripleTriad *env) {
    memset(env->game.observations, 0, TRIPLETRIAD_OBSERVED * sizeof(float));
    memset(env->owners, TRIPLETRIAD_NOBODY, sizeof env->owners);
    memset(env->gains, 0, sizeof env->gains);
    env->in_hand[TRIPLETRIAD_OWN] = env->in_hand[TRIPLETRIAD_RIVAL] = (1 << TRIPLETRIAD_HAND) - 1;
    env->points[TRIPLETRIAD_OWN] = env->points[TRIPLETRIAD_RIVAL] = TRIPLETRIAD_HAND;
    env->empty = (1 << TRIPLETRIAD_CELLS) - 1;
    env->selected = -1;
    env->mover = TRIPLETRIAD_OWN;
    env->placed = env->taken = 0;
    env->played[0] = env->played[1] = 0;
    env->illegal_actions = 0;
    tripletriad_deal(env);
    tripletriad_show_legal(env);
    tripletriad_show_numbers(env);
    if (env->players == 2) tripletriad_observe_of_two(env);
}

/* Returns a random set bit of `bits`, each with the same probability. There must be at least one. */
static inline int32_t tripletriad_pick(PufferRng *rng, uint32_t bits) {
    int32_t count = 0;
    for (uint32_t rest = bits; rest != 0; rest &= rest - 1) count++;
    for (int32_t skip = puffer_random_below(rng, count); skip > 0; skip--) bits &= bits - 1;
    return __builtin_ctz(bits);
}

static inline void tripletriad_play_rival(TripleTriad *env) {
    const int32_t card = tripletriad_pick(&env->game.rng, env->in_hand[TRIPLETRIAD_RIVAL]);
    const int32_t cell = tripletriad_pick(&env->game.rng, env->empty);
    tripletriad_place_card(env, TRIPLETRIAD_RIVAL, card, cell);
}

static inline void tripletriad_act(TripleTriad *env, int32_t action) {
    const bool known = action >= 0 && action < TRIPLETRIAD_ACTIONS;
    if (!known || !(tripletriad_legal(env) >> action & 1)) {
        env->illegal_actions++;
        env->game.rewards[0] -= env->illegal_cost;
        return;
    }
    if (action < TRIPLETRIAD_HAND) {
        env->selected = (int8_t)action;
        env->game.rewards[0] -= env->select_cost;
        tripletriad_show_card(env, TRIPLETRIAD_SELECTED, env->hands[TRIPLETRIAD_OWN][action]);
    } else {
        tripletriad_place_card(env, TRIPLETRIAD_OWN, env->selected, action - TRIPLETRIAD_HAND);
        env->selected = -1;
        tripletriad_hide_card(env, TRIPLETRIAD_SELECTED);
        if (env->empty != 0) tripletriad_play_rival(env);
        tripletriad_count_captures(env, TRIPLETRIAD_OWN, env->game.observations);
    }
    tripletriad_show_gains(env);
    tripletriad_show_legal(env);
}

static inline PufferOutcome tripletriad_outcome(TripleTriad *env) {
    const int32_t played = env->game.episode_length;
    if (env->empty != 0 && played < env->max_actions) return PUFFER_RUNNING;
    const int32_t lead = env->points[TRIPLETRIAD_OWN] - env->points[TRIPLETRIAD_RIVAL];
    const bool complete = env->empty == 0, won = complete && lead > 0, lost = !complete || lead < 0;
    env->game.rewards[0] += (float)won - (float)lost;
    env->score = complete ? env->points[TRIPLETRIAD_OWN] : 0;
    env->perf = won;
    env->out_of_time = !complete;
    env->illegal = (float)env->illegal_actions / (float)played;
    return PUFFER_TERMINATED;
}

static inline PufferOutcome tripletriad_step(TripleTriad *env) {
    env->placed = env->taken = 0;
    if (env->players == 2) return tripletriad_step_of_two(env);
    tripletriad_act(env, *(const int32_t *)env->game.actions);
    tripletriad_show_numbers(env);
    return tripletriad_outcome(env);
}

#endif
