/* Tactical's rules: units, legal actions, and their effects. */
#ifndef TACTICAL_RULES_H
#define TACTICAL_RULES_H

#include "board.h"

/* The parts of the action space. A cell is added to TACTICAL_MOVE and TACTICAL_EXPLODE. */
enum {
    TACTICAL_END = 0,
    TACTICAL_MOVE = 1,
    TACTICAL_EXPLODE = TACTICAL_MOVE + TACTICAL_CELLS,
    TACTICAL_FLY = TACTICAL_EXPLODE + TACTICAL_CELLS,
    TACTICAL_ROOT,
    TACTICAL_WIND,
    TACTICAL_RABBIT,
    TACTICAL_STEP, /* up, right, down, left */
    TACTICAL_AIM = TACTICAL_STEP + 4,
    TACTICAL_ACTIONS,
};

enum {
    TACTICAL_EXPLOSIVE,
    TACTICAL_FLYING,
    TACTICAL_ROOTING,
    TACTICAL_WINDY,
    TACTICAL_SWIFT,
    TACTICAL_SPELLS
};
enum { TACTICAL_BLAST = 2 /* radius */, TACTICAL_ROOTED = 3, TACTICAL_HASTE = 5 /* MP */ };

/* `cooldown` is the number of own turns that must end before the spell can be cast again. */
static const struct {
    int32_t cost, range, damage, cooldown;
} tactical_spells[TACTICAL_SPELLS] = {
    [TACTICAL_EXPLOSIVE] = {4, 11, 200, 0}, [TACTICAL_FLYING] = {3, 14, 100, 0},
    [TACTICAL_ROOTING] = {2, 8, 0, 2},      [TACTICAL_WINDY] = {4, 2 * TACTICAL_SIDE, 400, 0},
    [TACTICAL_SWIFT] = {2, 0, 0, 4},
};

typedef struct {
    int32_t place; /* with its own side of the board below */
    int32_t hp, ap, mp;
    int32_t rooting, swift; /* cooldowns of these spells */
} TacticalUnit;

/* Legal actions of the unit whose turn it is, except ending it. */
typedef struct {
    TacticalBoard moves, blasts;
    uint32_t others; /* bit i: action TACTICAL_FLY + i */
} TacticalOptions;

/* An event of the last step, for rendering: a move or a spell. Places are as the first unit sees them. */
typedef struct {
    int8_t unit, spell; /* TACTICAL_SPELLS is a move */
    uint8_t from, to;
} TacticalEvent;

enum { TACTICAL_EVENTS = 24 };

typedef struct {
    PufferGame game;
    /* parameters */
    int32_t hp, ap, mp;
    int32_t max_turns, turn_actions;
    int32_t map, players;
    float strength, damage_reward;
    /* metrics */
    float score, perf, turns, hp_left;
    /* state */
    TacticalUnit units[2];
    TacticalOptions options;
    int32_t board;      /* index of the map */
    int32_t actor;      /* index of the unit whose turn it is */
    int32_t turn;       /* counted from 1, of both units */
    int32_t turn_taken; /* actions in this turn */
    struct {
        int32_t own, other, mp;         /* places, and the other's MP; -1: none yet */
    } shown[2];                         /* contents of each agent's row */
    float hp_scale, ap_scale, mp_scale; /* to bytes */
    int32_t num_events;
    TacticalEvent events[TACTICAL_EVENTS];
} Tactical;

static inline const TacticalMap *tactical_map(const Tactical *env) {
    return &tactical_maps[env->board];
}

/* Place of the other unit, as `unit` sees it. */
static inline int32_t tactical_target(const Tactical *env, int32_t unit) {
    return tactical_turned(env->units[1 - unit].place);
}

/* ---- Legal actions ------------------------------------------------------------------------------- */

static inline uint32_t tactical_casts(const TacticalUnit *unit, int32_t target, bool sees) {
    const int32_t distance = tactical_distance(unit->place, target);
    const bool flying = unit->ap >= tactical_spells[TACTICAL_FLYING].cost &&
                        distance <= tactical_spells[TACTICAL_FLYING].range;
    const bool rooting = unit->ap >= tactical_spells[TACTICAL_ROOTING].cost && unit->rooting == 0 && sees &&
                         distance <= tactical_spells[TACTICAL_ROOTING].range;
    const bool windy =
        unit->ap >= tactical_spells[TACTICAL_WINDY].cost && sees && tactical_in_line(unit->place, target);
    const bool swift = unit->ap >= tactical_spells[TACTICAL_SWIFT].cost && unit->swift == 0;
    return (uint32_t)(flying | rooting << 1 | windy << 2 | swift << 3);
}

/* Legal shortcuts: single steps, and the explosive arrow at the other unit. */
static inline uint32_t tactical_shortcuts(const TacticalOptions *options, int32_t place, int32_t target) {
    const bool up = place >= TACTICAL_ROW && tactical_has(&options->moves, place - TACTICAL_ROW);
    const bool right = tactical_has(&options->moves, place + 1);
    const bool down =
        place + TACTICAL_ROW < TACTICAL_PLACES && tactical_has(&options->moves, place + TACTICAL_ROW);
    const bool left = place > 0 && tactical_has(&options->moves, place - 1);
    const bool aim = tactical_has(&options->blasts, target);
    return (uint32_t)(up | right << 1 | down << 2 | left << 3 | aim << 4) << (TACTICAL_STEP - TACTICAL_FLY);
}

/* The ground on which the unit whose turn it is can walk. */
static inline TacticalBoard tactical_free(const Tactical *env) {
    TacticalBoard free = tactical_map(env)->ground;
    tactical_remove(&free, tactical_target(env, env->actor));
    return free;
}

static inline void tactical_find_options(Tactical *env) {
    const TacticalUnit *unit = &env->units[env->actor];
    const TacticalBoard *seen = &tactical_map(env)->seen[unit->place];
    const TacticalBoard free = tactical_free(env);
    const int32_t target = tactical_target(env, env->actor);
    env->options.moves = tactical_flooded(tactical_singleton(unit->place), &free, unit->mp);
    tactical_remove(&env->options.moves, unit->place);
    env->options.blasts = (TacticalBoard){{0}};
    if (unit->ap >= tactical_spells[TACTICAL_EXPLOSIVE].cost) {
        const int32_t range = tactical_spells[TACTICAL_EXPLOSIVE].range;
        env->options.blasts = tactical_intersection(tactical_near[unit->place][range], seen);
    }
    env->options.others = tactical_casts(unit, target, tactical_has(seen, target)) |
                          tactical_shortcuts(&env->options, unit->place, target);
}

/* Places where the other's wind arrow can hit `unit` in its next turn, after a walk, but without the swift
 * rabbit. */
static inline TacticalBoard tactical_danger(const Tactical *env, int32_t unit) {
    const TacticalMap *map = tactical_map(env);
    const TacticalBoard start = tactical_singleton(tactical_target(env, unit));
    const TacticalBoard stands = tactical_flooded(start, &map->ground, env->units[1 - unit].mp);
    TacticalBoard danger = {{0}};
    for (int32_t word = 0; word < TACTICAL_WORDS; word++) {
        for (uint64_t bits = stands.words[word]; bits != 0; bits &= bits - 1) {
            const int32_t place = 64 * word + __builtin_ctzll(bits);
            const TacticalBoard hit = tactical_intersection(tactical_lines[place], &map->seen[place]);
            for (int32_t i = 0; i < TACTICAL_WORDS; i++) danger.words[i] |= hit.words[i];
        }
    }
    return danger;
}

static inline bool tactical_is_legal(const TacticalOptions *options, int32_t action) {
    if (action < 0 || action >= TACTICAL_ACTIONS) return false;
    if (action >= TACTICAL_FLY) return options->others >> (action - TACTICAL_FLY) & 1;
    if (action >= TACTICAL_EXPLODE) {
        return tactical_has(&options->blasts, tactical_place_of_cell(action - TACTICAL_EXPLODE));
    }
    if (action >= TACTICAL_MOVE) {
        return tactical_has(&options->moves, tactical_place_of_cell(action - TACTICAL_MOVE));
    }
    return true;
}

/* ---- Acting -------------------------------------------------------------------------------------- */

static inline void tactical_record_event(Tactical *env, int32_t spell, int32_t from, int32_t to) {
    if (env->num_events == TACTICAL_EVENTS) return;
    const bool turn = env->actor == 1;
    env->events[env->num_events++] = (TacticalEvent){
        .unit = (int8_t)env->actor,
        .spell = (int8_t)spell,
        .from = (uint8_t)(turn ? tactical_turned(from) : from),
        .to = (uint8_t)(turn ? tactical_turned(to) : to),
    };
}

static inline void tactical_reward(Tactical *env, int32_t unit, float reward) {
    if (unit < env->players) env->game.rewards[unit] += reward;
}

static inline void tactical_damage(Tactical *env, int32_t unit, int32_t damage) {
    TacticalUnit *hurt = &env->units[unit];
    const int32_t lost = damage < hurt->hp ? damage : hurt->hp;
    const float worth = env->damage_reward * (float)lost / (float)env->hp;
    hurt->hp -= lost;
    tactical_reward(env, unit, -worth);
    tactical_reward(env, 1 - unit, worth);
}

static inline void tactical_walk(Tactical *env, int32_t to) {
    TacticalUnit *unit = &env->units[env->actor];
    const TacticalBoard free = tactical_free(env), goal = tactical_singleton(to);
    int32_t steps = 0;
    tactical_nearest(unit->place, &goal, &free, &steps);
    tactical_record_event(env, TACTICAL_SPELLS, unit->place, to);
    unit->place = to;
    unit->mp -= steps;
}

/* Damages both units if they are in the blast. Walls give no cover. */
static inline void tactical_explode(Tactical *env, int32_t to) {
    const int32_t damage = tactical_spells[TACTICAL_EXPLOSIVE].damage, other = 1 - env->actor;
    const int32_t own = env->units[env->actor].place;
    if (tactical_distance(to, tactical_target(env, env->actor)) <= TACTICAL_BLAST) {
        tactical_damage(env, other, damage);
    }
    if (tactical_distance(to, own) <= TACTICAL_BLAST) tactical_damage(env, env->actor, damage);
}

static inline void tactical_cast(Tactical *env, int32_t spell, int32_t to) {
    TacticalUnit *unit = &env->units[env->actor], *other = &env->units[1 - env->actor];
    unit->ap -= tactical_spells[spell].cost;
    tactical_record_event(env, spell, unit->place, to);
    if (spell == TACTICAL_EXPLOSIVE) {
        tactical_explode(env, to);
    } else if (spell == TACTICAL_ROOTING) {
        unit->rooting = tactical_spells[spell].cooldown;
        other->mp = other->mp > TACTICAL_ROOTED ? other->mp - TACTICAL_ROOTED : 0;
    } else if (spell == TACTICAL_SWIFT) {
        unit->swift = tactical_spells[spell].cooldown;
        unit->mp += TACTICAL_HASTE;
    } else {
        tactical_damage(env, 1 - env->actor, tactical_spells[spell].damage);
    }
}

static inline bool tactical_is_over(const Tactical *env) {
    return env->units[0].hp == 0 || env->units[1].hp == 0 || env->turn > env->max_turns;
}

/* Ends the turn, and restores the unit's points. */
static inline void tactical_end_turn(Tactical *env) {
    TacticalUnit *unit = &env->units[env->actor];
    unit->ap = env->ap;
    unit->mp = env->mp;
    unit->rooting -= unit->rooting > 0;
    unit->swift -= unit->swift > 0;
    env->actor = 1 - env->actor;
    env->turn++;
    env->turn_taken = 0;
}

/* Returns the walk or explosive arrow that a legal action stands for, or the action itself. */
static inline int32_t tactical_resolve_action(const Tactical *env, int32_t action) {
    static const int32_t ways[] = {-TACTICAL_ROW, 1, TACTICAL_ROW, -1};
    if (action < TACTICAL_STEP) return action;
    if (action == TACTICAL_AIM) {
        return TACTICAL_EXPLODE + tactical_cell(tactical_target(env, env->actor));
    }
    return TACTICAL_MOVE + tactical_cell(env->units[env->actor].place + ways[action - TACTICAL_STEP]);
}

/* Executes one action of the unit whose turn it is. An illegal one is counted but has no effect. */
static inline void tactical_act(Tactical *env, int32_t action) {
    const int32_t target = tactical_target(env, env->actor);
    const bool legal = tactical_is_legal(&env->options, action);
    const bool ends = action == TACTICAL_END || ++env->turn_taken >= env->turn_actions;
    if (!legal && !ends) return;
    if (legal) action = tactical_resolve_action(env, action);
    if (legal && action >= TACTICAL_FLY) {
        tactical_cast(env, TACTICAL_FLYING + action - TACTICAL_FLY, target);
    } else if (legal && action >= TACTICAL_EXPLODE) {
        tactical_cast(env, TACTICAL_EXPLOSIVE, tactical_place_of_cell(action - TACTICAL_EXPLODE));
    } else if (legal && action >= TACTICAL_MOVE) {
        tactical_walk(env, tactical_place_of_cell(action - TACTICAL_MOVE));
    }
    if (ends && env->units[0].hp > 0 && env->units[1].hp > 0) tactical_end_turn(env);
    tactical_find_options(env);
}

#endif
