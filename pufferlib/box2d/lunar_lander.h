/* LunarLander-v3 of Gymnasium, discrete and continuous, with and without wind.
 *
 * Results equal those of Gymnasium byte by byte. So operations have the order and the precision of its Python code,
 * which computes with doubles. Box2D computes with floats. */
#ifndef PUFFER_LUNAR_LANDER_H
#define PUFFER_LUNAR_LANDER_H

#include <math.h>

#include "shapes.h"

enum { LANDER_CHUNKS = 11, LANDER_NUMBERS = 8, LANDER_NO_ENGINE = 0, LANDER_MAIN_ENGINE = 2 };

#define LANDER_MAIN_POWER    13.0
#define LANDER_SIDE_POWER    0.6
#define LANDER_INITIAL_FORCE 1000.0
#define LANDER_LEG_AWAY      20
#define LANDER_LEG_DOWN      18

static int32_t lander_actions(const Box2DOptions *options) {
    return options->is_continuous ? 2 : 1;
}

static void lander_make_moon(const Box2DEngine *engine, Box2DGame *game) {
    double heights[LANDER_CHUNKS + 1], smooth[LANDER_CHUNKS];
    const double step = BOX2D_WIDTH / (LANDER_CHUNKS - 1);
    for (int32_t i = 0; i <= LANDER_CHUNKS; i++) {
        heights[i] = puffer_uniform(&game->generator, 0, BOX2D_HEIGHT / 2);
    }
    game->pad_y = BOX2D_HEIGHT / 4;
    for (int32_t i = LANDER_CHUNKS / 2 - 2; i <= LANDER_CHUNKS / 2 + 2; i++) heights[i] = game->pad_y;
    for (int32_t i = 0; i < LANDER_CHUNKS; i++) {
        const double before = heights[i > 0 ? i - 1 : LANDER_CHUNKS];
        smooth[i] = 0.33 * (before + heights[i] + heights[i + 1]);
    }
    Box2DEdge edge = box2d_edge(engine, box2d_vec(0, 0), box2d_vec(BOX2D_WIDTH, 0));
    Box2DFixtureDef fixture = box2d_fixture(&edge, 0, 0.2, 1, UINT16_MAX);
    Box2DBody *moon = box2d_body(engine, game->world, BOX2D_STATIC, box2d_vec(0, 0), 0, &fixture);
    fixture.friction = (float)0.1;
    for (int32_t i = 0; i < LANDER_CHUNKS - 1; i++) {
        edge = box2d_edge(engine, box2d_vec(step * i, smooth[i]), box2d_vec(step * (i + 1), smooth[i + 1]));
        engine->make_fixture(moon, &fixture);
    }
    box2d_add_terrain(game, moon);
}

static void lander_make_leg(const Box2DEngine *engine, Box2DGame *game, int32_t side, double x, double y) {
    const int32_t limb = game->num_limbs++;
    const Box2DPolygon box = box2d_box(engine, 2 / BOX2D_SCALE, 8 / BOX2D_SCALE);
    const Box2DFixtureDef fixture = box2d_fixture(&box, 1, 0.2, 0x20, 1);
    const Box2DVec position = box2d_vec(x - side * LANDER_LEG_AWAY / BOX2D_SCALE, y);
    game->limbs[limb] = box2d_body(engine, game->world, BOX2D_DYNAMIC, position, side * 0.05, &fixture);
    game->feet[limb] = game->limbs[limb];
    box2d_connect(
        engine, game, game->hull, limb,
        (Box2DJointDef){
            .anchor_b = box2d_vec(side * LANDER_LEG_AWAY / BOX2D_SCALE, LANDER_LEG_DOWN / BOX2D_SCALE),
            .max_torque = 40,
            .motor_speed = (float)(0.3 * side),
            .lower = (float)(side < 0 ? 0.9 - 0.5 : -0.9),
            .upper = (float)(side < 0 ? 0.9 : -0.9 + 0.5),
        });
}

static void lander_begin(const Box2DEngine *engine, const Box2DOptions *options, Box2DGame *game) {
    static const double outline[][2] = {{-14, 17}, {-17, 0}, {-17, -10}, {17, -10}, {17, 0}, {14, 17}};
    enum { CORNERS = sizeof outline / sizeof *outline };
    const double x = BOX2D_WIDTH / 2, y = BOX2D_HEIGHT;
    Box2DVec points[CORNERS];
    lander_make_moon(engine, game);
    for (int32_t i = 0; i < CORNERS; i++) {
        points[i] = box2d_vec(outline[i][0] / BOX2D_SCALE, outline[i][1] / BOX2D_SCALE);
    }
    const Box2DPolygon polygon = box2d_polygon(engine, points, CORNERS);
    const Box2DFixtureDef fixture = box2d_fixture(&polygon, 5, 0.1, 0x10, 1);
    game->hull = box2d_body(engine, game->world, BOX2D_DYNAMIC, box2d_vec(x, y), 0, &fixture);
    const double force_x = puffer_uniform(&game->generator, -LANDER_INITIAL_FORCE, LANDER_INITIAL_FORCE);
    const double force_y = puffer_uniform(&game->generator, -LANDER_INITIAL_FORCE, LANDER_INITIAL_FORCE);
    box2d_force(game->hull, box2d_vec(force_x, force_y));
    if (options->has_wind) {
        game->wind = (double)puffer_integer(&game->generator, 2 * 9999) - 9999;
        game->turbulence = (double)puffer_integer(&game->generator, 2 * 9999) - 9999;
    }
    lander_make_leg(engine, game, -1, x, y);
    lander_make_leg(engine, game, 1, x, y);
}

/* Returns the strength of wind or turbulence, from -1 to 1, and advances its time. */
static inline double lander_gust(double *time) {
    const double strength = tanh(sin(0.02 * *time) + sin(PUFFER_PI * 0.01 * *time));
    *time += 1;
    return strength;
}

/* Pushes the lander with an engine: `x` and `y` are the position of its nozzle on the lander. */
static inline void lander_push(Box2DGame *game, double x, double y, double point_x, double point_y,
                               double engine_power, double power) {
    const Box2DVec impulse = box2d_vec(-x * engine_power * power, -y * engine_power * power);
    box2d_impulse(game->hull, impulse, box2d_vec(point_x, point_y));
}

/* Fires engines. Powers are 0, or from 0.5 to 1. The side engine's direction is -1 or 1. */
static void lander_fire(Box2DGame *game, double main_power, double side_power, double direction) {
    const Box2DBody *hull = game->hull;
    const double tip[] = {sin(hull->angle), cos(hull->angle)}, side[] = {-tip[1], tip[0]};
    const double first = puffer_uniform(&game->generator, -1, 1) / BOX2D_SCALE;
    const double second = puffer_uniform(&game->generator, -1, 1) / BOX2D_SCALE;
    if (main_power > 0) {
        const double along = 4 / BOX2D_SCALE + 2 * first;
        const double x = tip[0] * along + side[0] * second, y = -tip[1] * along - side[1] * second;
        lander_push(game, x, y, hull->position.x + x, hull->position.y + y, LANDER_MAIN_POWER, main_power);
    }
    if (side_power > 0) {
        const double across = 3 * second + direction * 12 / BOX2D_SCALE;
        const double x = tip[0] * first + side[0] * across, y = -tip[1] * first - side[1] * across;
        lander_push(game, x, y, hull->position.x + x - tip[0] * 17 / BOX2D_SCALE,
                    hull->position.y + y + tip[1] * 14 / BOX2D_SCALE, LANDER_SIDE_POWER, side_power);
    }
}

/* Returns the reward without that of an end. */
static double lander_reward(Box2DGame *game, const double *state, double main_power, double side_power) {
    const double shaping = -100 * sqrt(state[0] * state[0] + state[1] * state[1]) -
                           100 * sqrt(state[2] * state[2] + state[3] * state[3]) - 100 * fabs(state[4]) +
                           10 * state[6] + 10 * state[7];
    double reward = box2d_progress(game, shaping);
    reward -= main_power * 0.30;
    reward -= side_power * 0.03;
    return reward;
}

static double lander_step(const Box2DEngine *engine, const Box2DOptions *options, Box2DGame *game,
                          const void *actions, void *row, bool *is_over) {
    float *numbers = row;
    Box2DBody *hull = game->hull;
    double main_power = 0, side_power = 0, direction = 0;
    if (options->has_wind && !game->foot_is_down[0] && !game->foot_is_down[1]) {
        box2d_force(hull, box2d_vec(lander_gust(&game->wind) * options->wind_power, 0));
        box2d_torque(hull, (float)(lander_gust(&game->turbulence) * options->turbulence_power));
    }
    if (options->is_continuous) {
        const float *throttle = actions;
        if (throttle[0] > 0) main_power = (fmin(throttle[0], 1) + 1) * 0.5;
        if (fabsf(throttle[1]) > 0.5f) {
            direction = throttle[1] > 0 ? 1 : -1;
            side_power = fmin(fabs(throttle[1]), 1);
        }
    } else {
        const int32_t action = *(const int32_t *)actions;
        main_power = action == LANDER_MAIN_ENGINE;
        side_power = action != LANDER_MAIN_ENGINE && action != LANDER_NO_ENGINE;
        direction = action - LANDER_MAIN_ENGINE;
    }
    lander_fire(game, main_power, side_power, direction);
    box2d_step_world(engine, game);
    const double state[LANDER_NUMBERS] = {
        (hull->position.x - BOX2D_WIDTH / 2) / (BOX2D_WIDTH / 2),
        (hull->position.y - (game->pad_y + LANDER_LEG_DOWN / BOX2D_SCALE)) / (BOX2D_HEIGHT / 2),
        hull->velocity.x * (BOX2D_WIDTH / 2) / BOX2D_FPS,
        hull->velocity.y * (BOX2D_HEIGHT / 2) / BOX2D_FPS,
        hull->angle,
        20.0 * hull->angular_velocity / BOX2D_FPS,
        game->foot_is_down[0],
        game->foot_is_down[1],
    };
    for (int32_t i = 0; i < LANDER_NUMBERS; i++) numbers[i] = (float)state[i];
    const double reward = lander_reward(game, state, main_power, side_power);
    const bool is_asleep = !(hull->flags & BOX2D_AWAKE), is_lost = game->has_crashed || fabs(state[0]) >= 1;
    *is_over = is_asleep || is_lost;
    return is_asleep ? 100 : is_lost ? -100 : reward;
}

/* Draws the flames of the engines that the last action has fired. */
static void lander_draw_flames(const Box2DOptions *options, const Box2DGame *game, PufferCanvas *canvas) {
    if (game->num_played == 0) return;
    float throttle[2] = {0, 0};
    if (options->is_continuous) {
        memcpy(throttle, game->played + 2 * (game->num_played - 1), sizeof throttle);
    } else {
        const int32_t action = (int32_t)game->played[game->num_played - 1];
        throttle[0] = action == LANDER_MAIN_ENGINE;
        throttle[1] = action == LANDER_NO_ENGINE ? 0 : (float)(action - LANDER_MAIN_ENGINE);
    }
    if (throttle[0] > 0) shapes_flame(canvas, game->hull, 0, -10, 0, 30);
    if (throttle[1] > 0.5f) shapes_flame(canvas, game->hull, -17, 10, -15, 0);
    if (throttle[1] < -0.5f) shapes_flame(canvas, game->hull, 17, 10, 15, 0);
}

static void lander_draw(const Box2DOptions *options, const Box2DGame *game, PufferCanvas *canvas) {
    draw_clear(canvas, DRAW_NIGHT);
    lander_draw_flames(options, game, canvas);
    shapes_bodies(canvas, 0, game, DRAW_WHITE);
    shapes_flag(canvas, 0, BOX2D_WIDTH * 0.4, game->pad_y);
    shapes_flag(canvas, 0, BOX2D_WIDTH * 0.6, game->pad_y);
}

#endif
