/* Tactical: a turn-based duel of two archers on a board of 12 x 12 cells, as in tactical role-playing games.
 *
 * A unit has 2500 hit points (hp). In each of its turns it spends 12 action points (AP) on spells and 6
 * movement points (MP) on steps, in any order. They are restored when the turn ends. Steps go to the four
 * neighbours over ground. Walls, holes and the other unit block the way. The spells:
 *
 *   spell            AP  range  sight  effect
 *   explosive arrow  4   11     yes    200 damage to all units within 2 steps of a cell, also the shooter
 *   flying arrow     3   14     no     100 damage
 *   rooting arrow    2   8      yes    3 MP less for the other unit in its next turn; every second turn
 *   wind arrow       4   any    yes    400 damage, in the same row or column
 *   swift rabbit     2   self   no     5 MP more in this turn; every fourth turn
 *
 * Ranges are in steps, ignoring obstacles. Walls block sight, units and holes do not: the line between the
 * centers of two cells must not touch a wall, not even at a corner. A random map is chosen from 40 of five
 * kinds (meadow, ruins, lakes, river, island), all symmetric, and the player who starts is random too. Each
 * player sees and numbers the board with its own side below.
 *
 * Observation  uint8[1173], 255 for yes and 0 for no:
 *              - 0: the mask of legal actions, one for each of the 298
 *              - 298: planes of 144 cells each, row by row: own unit, other unit, ground, walls, cells that
 *                the other unit sees, cells where its wind arrow can hit in its next turn after a walk
 *                (without the swift rabbit)
 *              - 1162: own hp, AP and MP as fractions of their limits, cooldowns of rooting arrow and swift
 *                rabbit in turns (63 each), then the same of the other unit, then whether the own unit is to act
 * Actions      Discrete(298): 0 end the turn, 1 + cell walk there on the shortest path, 145 + cell explosive
 *              arrow to that cell, 289 flying, 290 rooting, 291 wind arrow at the other unit, 292 swift
 *              rabbit. 293 to 296 are one step up, right, down, left, and 297 is the explosive arrow at the
 *              other unit's cell. These are for keyboards. An illegal action does nothing, but a turn ends
 *              with its turn_actions-th action of any kind. A player who is not to act can only wait: 0 is
 *              legal, and any number does nothing.
 * Rewards      +1 for a win, -1 for a defeat, and damage_reward times the fraction of hp that the other unit
 *              lost, minus the fraction that the own unit lost.
 * Ends         terminal when a unit, or both, has no hp left, truncation after turn max_turns.
 * Players      1: an agent against the scripted unit, whose whole turn follows in the step that ends the
 *              agent's turn (if the script starts, in the first step, in which the agent waits). 2: an agent
 *              for each unit, for self-play. Both are present in every step, and one of them waits.
 * Source       PufferLib's tactical for the units, spells and kinds of cells. That is a game for two people
 *              at one screen, without observations, rewards, ends or an opponent. These are new, and so are
 *              the maps.
 *
 * 376 bytes per game, and tables of 265 KB per process. */
#ifndef TACTICAL_H
#define TACTICAL_H

#include "opponent.h"

/* Offsets in an observation. The own unit comes first. */
enum {
    TACTICAL_SEES_MASK = 0,
    TACTICAL_SEES_ITSELF = TACTICAL_SEES_MASK + TACTICAL_ACTIONS,
    TACTICAL_SEES_OTHER = TACTICAL_SEES_ITSELF + TACTICAL_CELLS,
    TACTICAL_SEES_GROUND = TACTICAL_SEES_OTHER + TACTICAL_CELLS,
    TACTICAL_SEES_WALLS = TACTICAL_SEES_GROUND + TACTICAL_CELLS,
    TACTICAL_SEES_SIGHT = TACTICAL_SEES_WALLS + TACTICAL_CELLS,
    TACTICAL_SEES_DANGER = TACTICAL_SEES_SIGHT + TACTICAL_CELLS,
    TACTICAL_SEES_UNITS = TACTICAL_SEES_DANGER + TACTICAL_CELLS,
    TACTICAL_SEES_TURN = TACTICAL_SEES_UNITS + 10,
    TACTICAL_OBSERVATION,
};

enum { TACTICAL_PICTURE_WIDTH = 800, TACTICAL_PICTURE_HEIGHT = 600 };

static const char tactical_about[] =
    "A duel of two archers in turns: walk, seek cover, and spend action points on spells.";

/* clang-format off */
static const PufferParameter tactical_parameters[] = {
    PUFFER_PARAMETER(Tactical, hp, 2500, 1, 100000, "hit points of a unit"),
    PUFFER_PARAMETER(Tactical, ap, 12, 0, 100, "action points of a turn"),
    PUFFER_PARAMETER(Tactical, mp, 6, 0, 100, "movement points of a turn"),
    PUFFER_PARAMETER(Tactical, max_turns, 200, 1, 100000, "turns, of both units together, until the game is cut off"),
    PUFFER_PARAMETER(Tactical, turn_actions, 20, 1, 1000, "actions, legal or not, until a turn ends by itself"),
    PUFFER_PARAMETER(Tactical, map, 0, 0, TACTICAL_KINDS, "1 meadow, 2 ruins, 3 lakes, 4 river, 5 island, 0 one of these at random"),
    PUFFER_PARAMETER(Tactical, players, 1, 1, 2, "agents of a game: 1 plays against the scripted unit, 2 against each other"),
    PUFFER_PARAMETER(Tactical, strength, 1, 0, 1, "share of its actions that the scripted unit chooses well instead of at random"),
    PUFFER_PARAMETER(Tactical, damage_reward, 0.2, 0, 10, "reward for taking all hit points of the other, and cost of losing one's own"),
};

static const PufferMetric tactical_metrics[] = {
    PUFFER_METRIC(Tactical, score, "1 where the first agent won, -1 where the other unit did, 0 for a draw or neither"),
    PUFFER_METRIC(Tactical, perf, "1 where the first agent won, else 0"),
    PUFFER_METRIC(Tactical, turns, "turns of both units"),
    PUFFER_METRIC(Tactical, hp_left, "hit points that the first agent kept, as a share"),
};
/* clang-format on */

static inline const char *tactical_spec(const Tactical *env, PufferSpec *spec) {
    *spec = (PufferSpec){
        .observation_type = PUFFER_UINT8,
        .observation_shape = {TACTICAL_OBSERVATION},
        .observation_low = 0,
        .observation_high = 255,
        .action_kind = PUFFER_DISCRETE,
        .action_sizes = {TACTICAL_ACTIONS},
        .action_mask = {TACTICAL_SEES_MASK, TACTICAL_ACTIONS},
        .agents = env->players,
        .picture_width = TACTICAL_PICTURE_WIDTH,
        .picture_height = TACTICAL_PICTURE_HEIGHT,
        .frames_per_second = 3,
    };
    return NULL;
}

/* ---- Observations -------------------------------------------------------------------------------- */

/* Expands each of the lowest eight bits to a byte of 0 or 255, in order. */
static inline uint64_t tactical_bytes(uint64_t bits) {
    const uint64_t picked = (bits & 255) * 0x0101010101010101u & 0x8040201008040201u;
    return ((picked + 0x7F7F7F7F7F7F7F7Fu) >> 7 & 0x0101010101010101u) * 255;
}

/* Writes a set of places as a byte for each cell. */
static inline void tactical_show(uint8_t *cells, const TacticalBoard *board) {
    for (int32_t y = 0; y < TACTICAL_SIDE; y++, cells += TACTICAL_SIDE) {
        const uint64_t row = board->words[y / 4] >> TACTICAL_ROW * (y % 4);
        const uint64_t left = tactical_bytes(row), right = tactical_bytes(row >> 8);
        memcpy(cells, &left, 8);
        memcpy(cells + 8, &right, 4);
    }
}

static inline void tactical_show_mask(const Tactical *env, uint8_t *mask, bool acts) {
    mask[TACTICAL_END] = 255;
    if (acts) {
        const uint64_t others = tactical_bytes(env->options.others);
        tactical_show(mask + TACTICAL_MOVE, &env->options.moves);
        tactical_show(mask + TACTICAL_EXPLODE, &env->options.blasts);
        memcpy(mask + TACTICAL_FLY, &others, TACTICAL_AIM - TACTICAL_FLY);
        mask[TACTICAL_AIM] = env->options.others >> (TACTICAL_AIM - TACTICAL_FLY) ? 255 : 0;
    } else {
        memset(mask + TACTICAL_MOVE, 0, TACTICAL_ACTIONS - TACTICAL_MOVE);
    }
}

static inline void tactical_show_unit(const Tactical *env, uint8_t *shares, const TacticalUnit *unit) {
    enum { LONGEST_COOLDOWN = 4, SHARE = 255 / LONGEST_COOLDOWN };
    shares[0] = (uint8_t)((float)unit->hp * env->hp_scale + 0.5f);
    shares[1] = (uint8_t)((float)unit->ap * env->ap_scale + 0.5f);
    shares[2] = (uint8_t)((float)unit->mp * env->mp_scale + 0.5f);
    shares[3] = (uint8_t)(SHARE * unit->rooting);
    shares[4] = (uint8_t)(SHARE * unit->swift);
}

/* Updates the cell of a unit in a plane. */
static inline void tactical_show_place(uint8_t *cells, int32_t *shown, int32_t place) {
    if (*shown >= 0) cells[tactical_cell(*shown)] = 0;
    cells[tactical_cell(place)] = 255;
    *shown = place;
}

/* Writes the planes that depend on the other unit's place and movement points. */
static inline void tactical_show_other(Tactical *env, uint8_t *row, int32_t agent) {
    const int32_t target = tactical_target(env, agent), mp = env->units[1 - agent].mp;
    if (env->shown[agent].other == target && env->shown[agent].mp == mp) return;
    const TacticalBoard danger = tactical_danger(env, agent);
    tactical_show(row + TACTICAL_SEES_DANGER, &danger);
    tactical_show(row + TACTICAL_SEES_SIGHT, &tactical_map(env)->seen[target]);
    tactical_show_place(row + TACTICAL_SEES_OTHER, &env->shown[agent].other, target);
    env->shown[agent].mp = mp;
}

static inline void tactical_observe(Tactical *env) {
    uint8_t *row = env->game.observations;
    for (int32_t agent = 0; agent < env->players; agent++, row += TACTICAL_OBSERVATION) {
        const TacticalUnit *unit = &env->units[agent];
        const bool acts = env->actor == agent;
        tactical_show_mask(env, row + TACTICAL_SEES_MASK, acts);
        tactical_show_place(row + TACTICAL_SEES_ITSELF, &env->shown[agent].own, unit->place);
        tactical_show_other(env, row, agent);
        tactical_show_unit(env, row + TACTICAL_SEES_UNITS, unit);
        tactical_show_unit(env, row + TACTICAL_SEES_UNITS + 5, &env->units[1 - agent]);
        row[TACTICAL_SEES_TURN] = acts ? 255 : 0;
    }
}

/* Writes the parts of each agent's row that are constant for the whole game. */
static inline void tactical_observe_map(Tactical *env) {
    uint8_t *row = env->game.observations;
    for (int32_t agent = 0; agent < env->players; agent++, row += TACTICAL_OBSERVATION) {
        memset(row + TACTICAL_SEES_ITSELF, 0, 2 * TACTICAL_CELLS);
        tactical_show(row + TACTICAL_SEES_GROUND, &tactical_map(env)->ground);
        tactical_show(row + TACTICAL_SEES_WALLS, &tactical_map(env)->walls);
        env->shown[agent].own = env->shown[agent].other = -1;
    }
}

/* ---- The game ------------------------------------------------------------------------------------- */

static inline void tactical_place_units(Tactical *env) {
    PufferRng *rng = &env->game.rng;
    const int32_t number = puffer_random_below(rng, TACTICAL_MAPS_OF_A_KIND);
    const int32_t kind = env->map > 0 ? env->map - 1 : puffer_random_below(rng, TACTICAL_KINDS);
    env->board = number * TACTICAL_KINDS + kind;
    env->actor = puffer_random_below(rng, 2);
    const TacticalBoard home = tactical_start_rows(tactical_map(env));
    const int32_t place = tactical_nth(&home, puffer_random_below(rng, tactical_count(&home)));
    for (int32_t unit = 0; unit < 2; unit++) {
        env->units[unit] = (TacticalUnit){.place = place, .hp = env->hp, .ap = env->ap, .mp = env->mp};
    }
}

static inline void tactical_reset(Tactical *env) {
    env->hp_scale = 255.0f / (float)env->hp;
    env->ap_scale = 255.0f / (float)(env->ap > 0 ? env->ap : 1);
    env->mp_scale = 255.0f / (float)(env->mp + TACTICAL_HASTE);
    env->turn = 1;
    env->turn_taken = env->num_events = 0;
    tactical_place_units(env);
    tactical_find_options(env);
    tactical_observe_map(env);
    tactical_observe(env);
}

static inline PufferOutcome tactical_outcome(Tactical *env) {
    if (!tactical_is_over(env)) return PUFFER_RUNNING;
    const bool first = env->units[0].hp > 0, second = env->units[1].hp > 0;
    env->score = (float)(first - second);
    env->perf = first && !second;
    env->turns = (float)(env->turn < env->max_turns ? env->turn : env->max_turns);
    env->hp_left = (float)env->units[0].hp / (float)env->hp;
    tactical_reward(env, 0, env->score);
    tactical_reward(env, 1, -env->score);
    return first && second ? PUFFER_TRUNCATED : PUFFER_TERMINATED;
}

static inline PufferOutcome tactical_step(Tactical *env) {
    const int32_t *actions = env->game.actions;
    env->num_events = 0;
    if (env->actor < env->players) tactical_act(env, actions[env->actor]);
    if (env->actor >= env->players && !tactical_is_over(env)) tactical_play_turn(env);
    tactical_observe(env);
    return tactical_outcome(env);
}

#endif
