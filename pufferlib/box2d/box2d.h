/* Games of one of Gymnasium's Box2D tasks, each with a world of its own, and the arrays that they share. */
#ifndef PUFFER_BOX2D_H
#define PUFFER_BOX2D_H

#include "bipedal_walker.h"
#include "car_racing.h"
#include "lunar_lander.h"

static const Box2DTask box2d_tasks[] = {
    {"LunarLander", LANDER_NUMBERS * sizeof(float), lander_actions, lander_begin, lander_step, lander_draw},
    {"BipedalWalker", WALKER_NUMBERS * sizeof(float), walker_actions, walker_begin, walker_step, walker_draw},
    {"CarRacing", CAR_BYTES, car_actions, car_begin, car_step, NULL},
};

/* Games and arrays with a row for each. */
typedef struct {
    Box2DEngine engine;
    Box2DOptions options;
    const Box2DTask *task;
    Box2DGame *games;
    int32_t num_actions;
    const int32_t *order;    /* games of this step */
    const uint32_t *actions; /* floats, or one int */
    uint8_t *observations;
    float *rewards;
    double *exact_rewards;
    bool *terminals, *truncations;
    int32_t *elapsed;
} Box2DGames;

/* Returns the task with this name, or NULL. */
static inline const Box2DTask *box2d_task(const char *name) {
    for (size_t i = 0; i < sizeof box2d_tasks / sizeof *box2d_tasks; i++) {
        if (strcmp(box2d_tasks[i].name, name) == 0) return &box2d_tasks[i];
    }
    return NULL;
}

static inline void *box2d_row(const Box2DGames *games, int32_t index) {
    return games->observations + (size_t)index * (size_t)games->task->observation_bytes;
}

/* Begins an episode, with a step without action, as Gymnasium does. */
static inline void box2d_begin(const Box2DGames *games, int32_t index) {
    static const uint32_t nothing[BOX2D_LIMBS];
    Box2DGame *game = &games->games[index];
    bool is_over;
    game->start = game->generator;
    box2d_clear(&games->engine, &games->options, game);
    games->task->begin(&games->engine, &games->options, game);
    games->task->step(&games->engine, &games->options, game, nothing, box2d_row(games, index), &is_over);
    games->elapsed[index] = 0;
}

/* Adds a step to the actions of the episode, from which a saved state is replayed. */
static inline void box2d_record(Box2DGame *game, const uint32_t *actions, size_t count) {
    if (game->num_played == game->capacity) {
        game->capacity = 2 * game->capacity + 64;
        game->played = realloc(game->played, (size_t)game->capacity * count * sizeof *game->played);
    }
    memcpy(game->played + (size_t)game->num_played++ * count, actions, count * sizeof *actions);
}

static inline void box2d_step(const Box2DGames *games, int32_t index, const uint32_t *actions) {
    Box2DGame *game = &games->games[index];
    bool is_over = false;
    const double reward =
        games->task->step(&games->engine, &games->options, game, actions, box2d_row(games, index), &is_over);
    if (!isnan(reward)) box2d_record(game, actions, (size_t)games->num_actions);
    games->exact_rewards[index] = reward;
    games->rewards[index] = (float)reward;
    games->terminals[index] = is_over;
    games->truncations[index] =
        ++games->elapsed[index] >= games->options.max_steps && games->options.max_steps > 0;
}

/* Draws a game, whose episode has begun, in SHAPES_WIDTH x SHAPES_HEIGHT pixels. */
static inline void box2d_draw(const Box2DGames *games, int32_t index, uint8_t *pixels) {
    PufferCanvas canvas = {.pixels = pixels, .width = SHAPES_WIDTH, .height = SHAPES_HEIGHT};
    games->task->draw(&games->options, &games->games[index], &canvas);
}

static void box2d_step_some(void *context, int32_t begin, int32_t end) {
    const Box2DGames *games = context;
    for (int32_t i = begin; i < end; i++) {
        const int32_t index = games->order[i];
        box2d_step(games, index, games->actions + (size_t)index * (size_t)games->num_actions);
    }
}

#endif
