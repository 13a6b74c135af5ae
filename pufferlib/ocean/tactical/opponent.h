/* Tactical's scripted player. In each turn it deals as much damage as it can. It walks, with the swift rabbit
 * if necessary, to the nearest place from where the wind arrow hits, or else the explosive arrow, or else the
 * flying arrow, and shoots until its points are spent. Remaining points are used to root the other unit. If
 * nothing hits, it comes as near as it can. It therefore makes every kill that damage in this order allows.
 */
#ifndef TACTICAL_OPPONENT_H
#define TACTICAL_OPPONENT_H

#include "rules.h"

static inline bool tactical_can(const Tactical *env, int32_t action) {
    return env->options.others >> (action - TACTICAL_FLY) & 1;
}

/* Walks to the nearest of `goals`. Returns TACTICAL_END if none can be reached. */
static inline int32_t tactical_walk_towards(const Tactical *env, const TacticalBoard *goals) {
    const TacticalBoard reached = tactical_intersection(env->options.moves, goals), free = tactical_free(env);
    if (!tactical_any(&reached)) return TACTICAL_END;
    const int32_t place = tactical_nearest(env->units[env->actor].place, &reached, &free, NULL);
    return TACTICAL_MOVE + tactical_cell(place);
}

/* Returns true if the swift rabbit brings one of `goals` into reach and leaves enough for a wind arrow. */
static inline bool tactical_should_cast_rabbit(const Tactical *env, const TacticalBoard *goals) {
    const TacticalUnit *unit = &env->units[env->actor];
    const int32_t cost = tactical_spells[TACTICAL_SWIFT].cost + tactical_spells[TACTICAL_WINDY].cost;
    if (!tactical_can(env, TACTICAL_RABBIT) || unit->ap < cost) return false;
    const TacticalBoard free = tactical_free(env);
    TacticalBoard moves = tactical_flooded(tactical_singleton(unit->place), &free, unit->mp + TACTICAL_HASTE);
    moves = tactical_intersection(moves, goals);
    return tactical_any(&moves);
}

/* Returns the wind arrow, or the walk to use it, or TACTICAL_END. */
static inline int32_t tactical_plan_wind_arrow(const Tactical *env, int32_t target,
                                               const TacticalBoard *seen) {
    if (tactical_can(env, TACTICAL_WIND)) return TACTICAL_WIND;
    const TacticalBoard lines = tactical_intersection(tactical_lines[target], seen);
    const int32_t move = tactical_walk_towards(env, &lines);
    if (move != TACTICAL_END) return move;
    return tactical_should_cast_rabbit(env, &lines) ? TACTICAL_RABBIT : TACTICAL_END;
}

/* Returns the explosive arrow to a place where it hurts only the other unit, or the walk to use it. */
static inline int32_t tactical_plan_explosive_arrow(const Tactical *env, int32_t target,
                                                    const TacticalBoard *seen) {
    const TacticalBoard *own_blast = &tactical_near[env->units[env->actor].place][TACTICAL_BLAST];
    const TacticalBoard *their_blast = &tactical_near[target][TACTICAL_BLAST];
    TacticalBoard places = tactical_intersection(env->options.blasts, their_blast);
    places = tactical_difference(places, own_blast);
    if (tactical_any(&places)) return TACTICAL_EXPLODE + tactical_cell(tactical_nth(&places, 0));
    places = tactical_intersection(tactical_near[target][tactical_spells[TACTICAL_EXPLOSIVE].range], seen);
    places = tactical_difference(places, their_blast);
    return tactical_walk_towards(env, &places);
}

/* Returns the move to the place in reach that is nearest to the other unit. */
static inline int32_t tactical_approach(const Tactical *env, int32_t target) {
    const int32_t own = env->units[env->actor].place;
    TacticalBoard places = env->options.moves;
    tactical_add(&places, own);
    const int32_t place = tactical_nearest(target, &places, &tactical_map(env)->ground, NULL);
    return place == own ? TACTICAL_END : TACTICAL_MOVE + tactical_cell(place);
}

static inline int32_t tactical_choose(const Tactical *env) {
    const int32_t ap = env->units[env->actor].ap, target = tactical_target(env, env->actor);
    const TacticalBoard *seen = &tactical_map(env)->seen[target];
    int32_t action = TACTICAL_END;
    if (ap >= tactical_spells[TACTICAL_WINDY].cost) {
        action = tactical_plan_wind_arrow(env, target, seen);
        if (action == TACTICAL_END) action = tactical_plan_explosive_arrow(env, target, seen);
    }
    if (action == TACTICAL_END && ap >= tactical_spells[TACTICAL_FLYING].cost) {
        if (tactical_can(env, TACTICAL_FLY)) return TACTICAL_FLY;
        action = tactical_walk_towards(env, &tactical_near[target][tactical_spells[TACTICAL_FLYING].range]);
        if (action == TACTICAL_END) action = tactical_approach(env, target);
    }
    return action == TACTICAL_END && tactical_can(env, TACTICAL_ROOT) ? TACTICAL_ROOT : action;
}

/* Returns a random legal action, all with equal probability. */
static inline int32_t tactical_choose_random(Tactical *env) {
    const TacticalOptions *options = &env->options;
    const int32_t moves = tactical_count(&options->moves), blasts = tactical_count(&options->blasts);
    const int32_t others = __builtin_popcount(options->others);
    int32_t choice = puffer_random_below(&env->game.rng, 1 + moves + blasts + others);
    if (choice < moves) return TACTICAL_MOVE + tactical_cell(tactical_nth(&options->moves, choice));
    choice -= moves;
    if (choice < blasts) return TACTICAL_EXPLODE + tactical_cell(tactical_nth(&options->blasts, choice));
    choice -= blasts;
    for (int32_t i = 0; i < TACTICAL_ACTIONS - TACTICAL_FLY; i++) {
        if (options->others >> i & 1 && choice-- == 0) return TACTICAL_FLY + i;
    }
    return TACTICAL_END;
}

/* Plays a whole turn. With less than full strength, some of its actions are random. */
static inline void tactical_play_turn(Tactical *env) {
    const int32_t own = env->actor;
    const int32_t skill = (int32_t)(env->strength * 65536);
    while (env->actor == own && !tactical_is_over(env)) {
        const bool is_best = puffer_random_below(&env->game.rng, 65536) < skill;
        tactical_act(env, is_best ? tactical_choose(env) : tactical_choose_random(env));
    }
}

#endif
