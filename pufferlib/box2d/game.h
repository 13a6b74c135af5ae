/* A game of one of Gymnasium's Box2D tasks, and the functions that a task consists of. */
#ifndef PUFFER_BOX2D_GAME_H
#define PUFFER_BOX2D_GAME_H

#include <stdlib.h>

#include "engine.h"
#include "joint.h"
#include "puffer_draw.h"
#include "puffer_numpy.h"

#define BOX2D_FPS    50
#define BOX2D_SCALE  30.0
#define BOX2D_WIDTH  (600 / BOX2D_SCALE) /* of the view */
#define BOX2D_HEIGHT (400 / BOX2D_SCALE)

enum { BOX2D_LIMBS = 4, BOX2D_FEET = 2, BOX2D_RAYS = 10 };

/* Keyword arguments of Gymnasium's classes, and numbers that Python computes. */
typedef struct {
    double gravity, wind_power, turbulence_power; /* of LunarLander */
    double ray_x[BOX2D_RAYS], ray_y[BOX2D_RAYS];  /* directions of BipedalWalker's rays, as long as these */
    double lap_percent;                           /* of CarRacing */
    uintptr_t texts;                              /* address of CarRacing's rewards as `PictureText` */
    bool is_continuous, has_wind, is_hardcore, has_random_colors;
    bool channels_first; /* in pictures */
    bool keeps_world;    /* episodes use the same world, whose state depends on earlier ones */
    int32_t max_steps;   /* 0: no limit */
} Box2DOptions;

typedef struct {
    const Box2DListenerMethods *methods; /* first, because Box2D takes the game for a contact listener */
    void *world;                         /* or NULL */
    PufferGenerator generator, start;    /* now, and at the start of the episode */
    Box2DBody *hull, *limbs[BOX2D_LIMBS];
    Box2DBody *feet[BOX2D_FEET];
    Box2DJoint *joints[BOX2D_LIMBS];
    Box2DSolver solvers[BOX2D_LIMBS];
    Box2DBody **terrain;
    int32_t num_terrain, terrain_capacity, num_limbs;
    bool has_crashed; /* the hull touched the ground */
    bool foot_is_down[BOX2D_FEET];
    bool has_shaping;
    double shaping;               /* potential of the last step, if there was one */
    double pad_y;                 /* of LunarLander */
    double wind, turbulence;      /* their time, of LunarLander */
    struct Car *car;              /* of CarRacing, or NULL */
    bool has_finished;            /* the lap */
    uint32_t *played;             /* actions of the episode so far: floats, or one int */
    int32_t num_played, capacity; /* steps in `played`, and those that it has room for */
} Box2DGame;

typedef struct {
    const char *name;
    int32_t observation_bytes;
    /* Returns the number of actions, each of which is a float, or an int if they are discrete. */
    int32_t (*actions)(const Box2DOptions *options);
    /* Makes the bodies of an episode. */
    void (*begin)(const Box2DEngine *engine, const Box2DOptions *options, Box2DGame *game);
    /* Takes a step, writes the observation, and returns the reward, or NaN for an action that is NaN. */
    double (*step)(const Box2DEngine *engine, const Box2DOptions *options, Box2DGame *game,
                   const void *actions, void *row, bool *is_over);
    /* Draws the world, or NULL if the observation is a picture. */
    void (*draw)(const Box2DOptions *options, const Box2DGame *game, PufferCanvas *canvas);
} Box2DTask;

/* ---- Contacts ----------------------------------------------------------------------------------------- */

static inline bool box2d_touches(const Box2DContact *contact, const Box2DBody *body) {
    return contact->fixture_a->body == body || contact->fixture_b->body == body;
}

static void box2d_begin_contact(void *listener, const Box2DContact *contact) {
    Box2DGame *game = listener;
    game->has_crashed |= box2d_touches(contact, game->hull);
    for (int32_t i = 0; i < BOX2D_FEET; i++) game->foot_is_down[i] |= box2d_touches(contact, game->feet[i]);
}

static void box2d_end_contact(void *listener, const Box2DContact *contact) {
    Box2DGame *game = listener;
    for (int32_t i = 0; i < BOX2D_FEET; i++) {
        if (box2d_touches(contact, game->feet[i])) game->foot_is_down[i] = false;
    }
}

static void box2d_ignore(void *listener, void *contact, const void *values) {
    (void)listener, (void)contact, (void)values;
}

static const Box2DListenerMethods box2d_listener = {
    .begin = box2d_begin_contact,
    .end = box2d_end_contact,
    .pre_solve = box2d_ignore,
    .post_solve = box2d_ignore,
};

/* ---- Episodes ----------------------------------------------------------------------------------------- */

/* Empties the world of a game, or makes a new one. */
static inline void box2d_clear(const Box2DEngine *engine, const Box2DOptions *options, Box2DGame *game) {
    const bool is_new = game->world == NULL;
    if (is_new) game->world = malloc(BOX2D_WORLD_BYTES);
    if (!is_new && options->keeps_world) {
        engine->set_listener(game->world, NULL);
        for (int32_t i = game->num_terrain - 1; i >= 0; i--)
            engine->destroy_body(game->world, game->terrain[i]);
        engine->destroy_body(game->world, game->hull);
        for (int32_t i = 0; i < game->num_limbs; i++) engine->destroy_body(game->world, game->limbs[i]);
    } else {
        const Box2DVec gravity = box2d_vec(0, options->gravity);
        if (!is_new) engine->destroy_world(game->world);
        engine->make_world(game->world, &gravity);
    }
    game->methods = &box2d_listener;
    engine->set_listener(game->world, game);
    game->num_terrain = game->num_limbs = game->num_played = 0;
    game->has_crashed = game->foot_is_down[0] = game->foot_is_down[1] = game->has_shaping = false;
}

/* Adds a body that `box2d_clear` destroys, before those that were added earlier. */
static inline void box2d_add_terrain(Box2DGame *game, Box2DBody *body) {
    if (game->num_terrain == game->terrain_capacity) {
        game->terrain_capacity = 2 * game->terrain_capacity + 64;
        game->terrain = realloc(game->terrain, (size_t)game->terrain_capacity * sizeof(Box2DBody *));
    }
    game->terrain[game->num_terrain++] = body;
}

static inline void box2d_close(const Box2DEngine *engine, Box2DGame *game) {
    if (game->world != NULL) engine->destroy_world(game->world);
    free(game->world);
    free(game->terrain);
    free(game->car);
    free(game->played);
    game->world = game->played = NULL;
    game->terrain = NULL;
    game->car = NULL;
    game->num_played = game->capacity = game->terrain_capacity = 0;
}

/* Connects a new limb to a body with a motor. `limb` is the limb's index. The angle of the joint is 0 now, which the
 * package adds to Box2D's definition. */
static inline void box2d_connect(const Box2DEngine *engine, Box2DGame *game, Box2DBody *body, int32_t limb,
                                 Box2DJointDef def) {
    def.type = BOX2D_REVOLUTE;
    def.body_a = body, def.body_b = game->limbs[limb];
    def.reference_angle = (float)((double)def.body_b->angle - (double)def.body_a->angle);
    def.has_limits = def.has_motor = true;
    def.user_data = &game->solvers[limb];
    game->solvers[limb].engine = engine;
    game->joints[limb] = engine->make_joint(game->world, &def);
    game->joints[limb]->methods = &engine->joint_methods[2];
}

/* Returns the change of the potential, or 0 in the first step of an episode. */
static inline double box2d_progress(Box2DGame *game, double shaping) {
    const double change = game->has_shaping ? shaping - game->shaping : 0;
    game->shaping = shaping;
    game->has_shaping = true;
    return change;
}

static inline void box2d_step_world(const Box2DEngine *engine, Box2DGame *game) {
    engine->step(game->world, (float)(1.0 / BOX2D_FPS), 6 * 30, 2 * 30);
}

#endif
