/* BipedalWalker-v3 and BipedalWalkerHardcore-v3 of Gymnasium.
 *
 * Results equal those of Gymnasium byte by byte. So operations have the order and the precision of its Python code,
 * which computes with doubles, except for the cost of actions. Box2D computes with floats. */
#ifndef PUFFER_BIPEDAL_WALKER_H
#define PUFFER_BIPEDAL_WALKER_H

#include <math.h>

#include "shapes.h"

enum {
    WALKER_NUMBERS = 24,
    WALKER_TERRAIN = 200, /* steps of the terrain */
    WALKER_GRASS = 10,    /* most steps of grass between obstacles */
    WALKER_START = 20,    /* steps of flat ground */
    WALKER_CLOUDS = WALKER_TERRAIN / 20,
    WALKER_CLOUD_CORNERS = 5,
    WALKER_TORQUE = 80,
    WALKER_HIP_SPEED = 4,
    WALKER_KNEE_SPEED = 6,
};

#define WALKER_STEP       (14 / BOX2D_SCALE)
#define WALKER_GROUND     (BOX2D_HEIGHT / 4)
#define WALKER_LEG_DOWN   (-8 / BOX2D_SCALE)
#define WALKER_LEG_WIDTH  (8 / BOX2D_SCALE)
#define WALKER_LEG_HEIGHT (34 / BOX2D_SCALE)
#define WALKER_FRICTION   2.5

static int32_t walker_actions(const Box2DOptions *options) {
    (void)options;
    return BOX2D_LIMBS;
}

/* ---- Terrain ------------------------------------------------------------------------------------------ */

typedef enum { WALKER_GRASSLAND, WALKER_STUMP, WALKER_STAIRS, WALKER_PIT, WALKER_STATES } WalkerGround;

/* Draws an integer from `low` to `high` - 1, like `Generator.integers(low, high)`, which draws nothing for one value. */
static inline int32_t walker_integer(Box2DGame *game, int32_t low, int32_t high) {
    return high - low == 1 ? low : low + (int32_t)puffer_integer(&game->generator, (uint32_t)(high - low));
}

static void walker_add_ground(const Box2DEngine *engine, Box2DGame *game, const void *shape) {
    const Box2DFixtureDef fixture = box2d_fixture(shape, 0, WALKER_FRICTION, 1, UINT16_MAX);
    box2d_add_terrain(game, box2d_body(engine, game->world, BOX2D_STATIC, box2d_vec(0, 0), 0, &fixture));
}

/* Adds a rectangle, whose corners begin with (left, first) and (right, first). */
static void walker_add_block(const Box2DEngine *engine, Box2DGame *game, double left, double right,
                             double first, double second) {
    const Box2DVec points[] = {box2d_vec(left, first), box2d_vec(right, first), box2d_vec(right, second),
                               box2d_vec(left, second)};
    const Box2DPolygon polygon = box2d_polygon(engine, points, 4);
    walker_add_ground(engine, game, &polygon);
}

static void walker_make_terrain(const Box2DEngine *engine, const Box2DOptions *options, Box2DGame *game) {
    WalkerGround state = WALKER_GRASSLAND;
    double heights[WALKER_TERRAIN], velocity = 0, y = WALKER_GROUND, original_y = 0;
    int32_t counter = WALKER_START, stairs = 0, stair_width = 0, stair_height = 0;
    bool is_first = false; /* step of this kind of ground */
    for (int32_t i = 0; i < WALKER_TERRAIN; i++) {
        const double x = i * WALKER_STEP;
        if (state == WALKER_GRASSLAND && !is_first) {
            velocity = 0.8 * velocity + 0.01 * ((WALKER_GROUND > y) - (WALKER_GROUND < y));
            if (i > WALKER_START) velocity += puffer_uniform(&game->generator, -1, 1) / BOX2D_SCALE;
            y += velocity;
        } else if (state == WALKER_PIT && is_first) {
            counter = walker_integer(game, 3, 5);
            const double bottom = y - 4 * WALKER_STEP, gap = WALKER_STEP * counter;
            walker_add_block(engine, game, x, x + WALKER_STEP, y, bottom);
            walker_add_block(engine, game, x + gap, x + WALKER_STEP + gap, y, bottom);
            counter += 2;
            original_y = y;
        } else if (state == WALKER_PIT) {
            y = original_y;
            if (counter > 1) y -= 4 * WALKER_STEP;
        } else if (state == WALKER_STUMP && is_first) {
            counter = walker_integer(game, 1, 3);
            walker_add_block(engine, game, x, x + counter * WALKER_STEP, y, y + counter * WALKER_STEP);
        } else if (state == WALKER_STAIRS && is_first) {
            stair_height = puffer_unit(&game->generator) > 0.5 ? 1 : -1;
            stair_width = walker_integer(game, 4, 5);
            stairs = walker_integer(game, 3, 5);
            original_y = y;
            for (int32_t s = 0; s < stairs; s++) {
                walker_add_block(engine, game, x + (s * stair_width) * WALKER_STEP,
                                 x + ((1 + s) * stair_width) * WALKER_STEP,
                                 y + (s * stair_height) * WALKER_STEP,
                                 y + (-1 + s * stair_height) * WALKER_STEP);
            }
            counter = stairs * stair_width;
        } else if (state == WALKER_STAIRS) {
            const double n = (double)(stairs * stair_width - counter - stair_height) / stair_width;
            y = original_y + (n * stair_height) * WALKER_STEP;
        }
        is_first = false;
        heights[i] = y;
        if (--counter == 0) {
            counter = walker_integer(game, WALKER_GRASS / 2, WALKER_GRASS);
            if (state == WALKER_GRASSLAND && options->is_hardcore) {
                state = (WalkerGround)walker_integer(game, 1, WALKER_STATES);
            } else {
                state = WALKER_GRASSLAND;
            }
            is_first = true;
        }
    }
    for (int32_t i = 0; i < WALKER_TERRAIN - 1; i++) {
        const Box2DEdge edge = box2d_edge(engine, box2d_vec(i * WALKER_STEP, heights[i]),
                                          box2d_vec((i + 1) * WALKER_STEP, heights[i + 1]));
        walker_add_ground(engine, game, &edge);
    }
}

/* ---- Bodies ------------------------------------------------------------------------------------------- */

/* Makes a part of a leg. `top` is the height of its upper end in the body that it hangs from. */
static void walker_make_limb(const Box2DEngine *engine, Box2DGame *game, Box2DBody *body, Box2DVec position,
                             double angle, double width, double top, Box2DJointDef joint) {
    const int32_t limb = game->num_limbs++;
    const Box2DPolygon box = box2d_box(engine, width / 2, WALKER_LEG_HEIGHT / 2);
    const Box2DFixtureDef fixture = box2d_fixture(&box, 1, 0.2, 0x20, 1);
    game->limbs[limb] = box2d_body(engine, game->world, BOX2D_DYNAMIC, position, angle, &fixture);
    joint.anchor_a = box2d_vec(0, top), joint.anchor_b = box2d_vec(0, WALKER_LEG_HEIGHT / 2);
    joint.max_torque = WALKER_TORQUE;
    box2d_connect(engine, game, body, limb, joint);
}

static void walker_begin(const Box2DEngine *engine, const Box2DOptions *options, Box2DGame *game) {
    static const double outline[][2] = {{-30, 9}, {6, 9}, {34, 1}, {34, -8}, {-30, -8}};
    enum { CORNERS = sizeof outline / sizeof *outline };
    const double x = WALKER_STEP * WALKER_START / 2, y = WALKER_GROUND + 2 * WALKER_LEG_HEIGHT;
    const Box2DVec upper = box2d_vec(x, y - WALKER_LEG_HEIGHT / 2 - WALKER_LEG_DOWN);
    const Box2DVec lower = box2d_vec(x, y - WALKER_LEG_HEIGHT * 3 / 2 - WALKER_LEG_DOWN);
    Box2DVec points[CORNERS];
    walker_make_terrain(engine, options, game);
    /* Gymnasium draws clouds with the same generator: a position, and two numbers for each corner. */
    for (int32_t i = 0; i < WALKER_CLOUDS * (1 + 2 * WALKER_CLOUD_CORNERS); i++)
        puffer_draw_word(&game->generator);
    for (int32_t i = 0; i < CORNERS; i++) {
        points[i] = box2d_vec(outline[i][0] / BOX2D_SCALE, outline[i][1] / BOX2D_SCALE);
    }
    const Box2DPolygon polygon = box2d_polygon(engine, points, CORNERS);
    const Box2DFixtureDef fixture = box2d_fixture(&polygon, 5, 0.1, 0x20, 1);
    game->hull = box2d_body(engine, game->world, BOX2D_DYNAMIC, box2d_vec(x, y), 0, &fixture);
    box2d_force(game->hull, box2d_vec(puffer_uniform(&game->generator, -5, 5), 0));
    for (int32_t side = -1; side <= 1; side += 2) {
        walker_make_limb(engine, game, game->hull, upper, side * 0.05, WALKER_LEG_WIDTH, WALKER_LEG_DOWN,
                         (Box2DJointDef){.motor_speed = (float)side, .lower = -0.8f, .upper = 1.1f});
        walker_make_limb(engine, game, game->limbs[game->num_limbs - 1], lower, side * 0.05,
                         0.8 * WALKER_LEG_WIDTH, -WALKER_LEG_HEIGHT / 2,
                         (Box2DJointDef){.motor_speed = 1, .lower = -1.6f, .upper = -0.1f});
        game->feet[side > 0] = game->limbs[game->num_limbs - 1];
    }
}

/* ---- Steps -------------------------------------------------------------------------------------------- */

typedef struct {
    const Box2DRayMethods *methods;
    float fraction; /* of the ray until the ground */
} WalkerRay;

static float walker_report(void *ray, const Box2DFixture *fixture, const Box2DVec *point,
                           const Box2DVec *normal, float fraction) {
    (void)point, (void)normal;
    if (!(fixture->filter.category & 1)) return -1; /* ignores the walker */
    return ((WalkerRay *)ray)->fraction = fraction;
}

static const Box2DRayMethods walker_ray = {.report = walker_report};

static void walker_look(const Box2DEngine *engine, const Box2DOptions *options, const Box2DGame *game,
                        float *row) {
    const Box2DVec from = game->hull->position;
    for (int32_t i = 0; i < BOX2D_RAYS; i++) {
        WalkerRay ray = {&walker_ray, 1};
        const Box2DVec to = box2d_vec(from.x + options->ray_x[i], from.y - options->ray_y[i]);
        engine->cast_ray(game->world, &ray, &from, &to);
        row[i] = ray.fraction;
    }
}

/* Writes the angles and speeds of a leg, and whether its foot is on the ground. */
static void walker_observe_leg(const Box2DEngine *engine, const Box2DGame *game, int32_t leg, float *row) {
    const Box2DJoint *hip = game->joints[2 * leg], *knee = game->joints[2 * leg + 1];
    row[0] = engine->joint_angle(hip);
    row[1] = (float)((double)engine->joint_speed(hip) / WALKER_HIP_SPEED);
    row[2] = (float)((double)engine->joint_angle(knee) + 1.0);
    row[3] = (float)((double)engine->joint_speed(knee) / WALKER_KNEE_SPEED);
    row[4] = game->foot_is_down[leg];
}

static inline float walker_effort(float action) {
    const float size = fabsf(action);
    return size < 1 ? size : 1;
}

static double walker_step(const Box2DEngine *engine, const Box2DOptions *options, Box2DGame *game,
                          const void *actions, void *row, bool *is_over) {
    float *numbers = row;
    const Box2DBody *hull = game->hull;
    const float *action = actions;
    for (int32_t i = 0; i < BOX2D_LIMBS; i++) {
        if (isnan(action[i])) return NAN; /* would make Box2D throw an exception */
    }
    for (int32_t i = 0; i < BOX2D_LIMBS; i++) {
        const int32_t sign = (action[i] > 0) - (action[i] < 0);
        engine->set_motor_speed(game->joints[i],
                                (float)(sign * (i % 2 ? WALKER_KNEE_SPEED : WALKER_HIP_SPEED)));
        engine->set_max_torque(game->joints[i], WALKER_TORQUE * walker_effort(action[i]));
    }
    box2d_step_world(engine, game);
    numbers[0] = hull->angle;
    numbers[1] = (float)(2.0 * hull->angular_velocity / BOX2D_FPS);
    numbers[2] = (float)(0.3 * hull->velocity.x * BOX2D_WIDTH / BOX2D_FPS);
    numbers[3] = (float)(0.3 * hull->velocity.y * BOX2D_HEIGHT / BOX2D_FPS);
    walker_observe_leg(engine, game, 0, numbers + 4);
    walker_observe_leg(engine, game, 1, numbers + 9);
    walker_look(engine, options, game, numbers + 14);
    const double x = hull->position.x;
    float reward = (float)box2d_progress(game, 130 * x / BOX2D_SCALE - 5.0 * fabs(hull->angle));
    for (int32_t i = 0; i < BOX2D_LIMBS; i++) {
        reward -= (float)(0.00035 * WALKER_TORQUE) * walker_effort(action[i]); /* NumPy's type, float32 */
    }
    const bool has_failed = game->has_crashed || x < 0;
    *is_over = has_failed || x > (WALKER_TERRAIN - WALKER_GRASS) * WALKER_STEP;
    return has_failed ? -100 : reward;
}

static void walker_draw(const Box2DOptions *options, const Box2DGame *game, PufferCanvas *canvas) {
    const double scroll = game->hull->position.x - BOX2D_WIDTH / 5;
    (void)options;
    draw_clear(canvas, SHAPES_SKY);
    shapes_flag(canvas, scroll, 3 * WALKER_STEP, WALKER_GROUND);
    shapes_bodies(canvas, scroll, game, SHAPES_GRASS);
}

#endif
