/* Pong: a match against a scripted paddle, which follows the ball but is slower than a steep one.
 *
 * The field is `width` by `height` px, and y points up. The paddles are just outside of its left and right
 * edges, the agent's on the right. A step simulates `frameskip` frames, or fewer when a point ends it.
 *
 * Observation  float[8], all in [0, 1]: height of the left and the right paddle, the ball's x and y, its
 *              horizontal direction (0 left, 1 right) and vertical speed (0.5 is level), points of the left
 *              and the right side as fractions of max_score.
 * Actions      Discrete(3): 0 stay, 1 up, 2 down. Any other number stays. With `continuous`, Box(1): speed of
 *              the paddle as a fraction of paddle_speed, clamped to [-1, 1].
 * Rewards      +1 for a point won, -1 for a point lost, +0.1 for returning the ball, summed over the frames.
 * Ends         terminal when a side has max_score points, truncation after the step that reaches max_frames.
 * Source       PufferLib's Pong. There observations 6 and 7 are rounded down to 0 until the match is over,
 *              the observation of a step that scores shows the previous rally, the episode length counts only
 *              the last rally, a serve is level or downwards but never upwards, and nothing limits a rally.
 */
#ifndef PONG_H
#define PONG_H

#include "puffer_env.h"

enum { PONG_STAY, PONG_UP, PONG_DOWN };

typedef struct {
    PufferGame game;
    /* parameters, lengths in px, speeds in px per frame */
    int32_t width, height;
    int32_t paddle_width, paddle_height, ball_size;
    float paddle_speed, ball_speed_x, serve_speed_y, spin, max_ball_speed_y;
    int32_t max_score, max_frames, frameskip;
    bool continuous;
    /* metrics */
    float score, perf;
    /* state */
    float left_y, right_y; /* centers of the paddles, from one edge of the field to the other */
    float ball_x, ball_y;  /* lower left corner of the ball */
    float velocity_x, velocity_y;
    int32_t left_points, right_points, frames;
} Pong;

static const char pong_about[] = "Pong against a scripted paddle that is slower than a steep ball.";

/* clang-format off */
static const PufferParameter pong_parameters[] = {
    PUFFER_PARAMETER(Pong, width, 500, 50, 2048, "width of the field, px"),
    PUFFER_PARAMETER(Pong, height, 640, 50, 2048, "height of the field, px"),
    PUFFER_PARAMETER(Pong, paddle_width, 20, 1, 100, "thickness of the paddles in the picture, px"),
    PUFFER_PARAMETER(Pong, paddle_height, 70, 1, 1024, "length of the paddles, px"),
    PUFFER_PARAMETER(Pong, ball_size, 32, 1, 256, "side of the ball, px"),
    PUFFER_PARAMETER(Pong, paddle_speed, 8, 0, 100, "speed of both paddles, px a frame"),
    PUFFER_PARAMETER(Pong, ball_speed_x, 10, 1, 100, "horizontal speed of the ball, px a frame"),
    PUFFER_PARAMETER(Pong, serve_speed_y, 1, 0, 100, "vertical speed of a serve that is not level, px a frame"),
    PUFFER_PARAMETER(Pong, spin, 3, 0, 100, "vertical speed that a moving paddle gives to the ball, px a frame"),
    PUFFER_PARAMETER(Pong, max_ball_speed_y, 13, 1, 100, "greatest vertical speed of the ball, px a frame"),
    PUFFER_PARAMETER(Pong, max_score, 21, 1, 1000, "points that win the match"),
    PUFFER_PARAMETER(Pong, max_frames, 36000, 1, 100000000, "frames until the match is cut off"),
    PUFFER_PARAMETER(Pong, frameskip, 1, 1, 1000, "frames that a step plays"),
    PUFFER_PARAMETER(Pong, continuous, false, false, true, "actions are speeds instead of directions"),
};

static const PufferMetric pong_metrics[] = {
    PUFFER_METRIC(Pong, score, "points won minus points lost"),
    PUFFER_METRIC(Pong, perf, "points won as a share of all points"),
};
/* clang-format on */

static inline const char *pong_spec(const Pong *env, PufferSpec *spec) {
    if (env->ball_size >= env->width || env->ball_size >= env->height) {
        return "ball_size must be less than width and height";
    }
    if (env->paddle_height > env->height) return "paddle_height must be at most height";
    if (env->serve_speed_y > env->max_ball_speed_y) {
        return "serve_speed_y must be at most max_ball_speed_y";
    }
    *spec = (PufferSpec){
        .observation_type = PUFFER_FLOAT32,
        .observation_shape = {8},
        .observation_low = 0,
        .observation_high = 1,
        .action_kind = env->continuous ? PUFFER_BOX : PUFFER_DISCRETE,
        .action_sizes = {env->continuous ? 1 : 3},
        .agents = 1,
        .picture_width = env->width + 2 * env->paddle_width,
        .picture_height = env->height,
        .frames_per_second = 60.0f / (float)env->frameskip,
    };
    return NULL;
}

static inline void pong_observe(Pong *env) {
    float *observation = env->game.observations;
    const float width = (float)env->width, height = (float)env->height, points = (float)env->max_score;
    observation[0] = env->left_y / height;
    observation[1] = env->right_y / height;
    observation[2] = env->ball_x / width;
    observation[3] = env->ball_y / height;
    observation[4] = env->velocity_x > 0;
    observation[5] = 0.5f + 0.5f * env->velocity_y / env->max_ball_speed_y;
    observation[6] = (float)env->left_points / points;
    observation[7] = (float)env->right_points / points;
}

static inline void pong_serve(Pong *env) {
    env->left_y = env->right_y = 0.5f * (float)env->height;
    env->ball_x = 0.2f * (float)(env->width - env->ball_size);
    env->ball_y = 0.5f * (float)(env->height - env->ball_size);
    env->velocity_x = env->ball_speed_x;
    env->velocity_y = env->serve_speed_y * (float)(puffer_random_below(&env->game.rng, 3) - 1);
}

static inline void pong_reset(Pong *env) {
    env->left_points = env->right_points = env->frames = 0;
    pong_serve(env);
    pong_observe(env);
}

/* Direction of the paddle, in [-1, 1]. */
static inline float pong_direction(const Pong *env) {
    if (env->continuous) return puffer_clamp(*(const float *)env->game.actions, -1, 1);
    const int32_t action = *(const int32_t *)env->game.actions;
    return (float)((action == PONG_UP) - (action == PONG_DOWN));
}

/* The left paddle follows the lower edge of the ball, which keeps it in the field. */
static inline void pong_move(Pong *env, float direction) {
    const float speed = env->paddle_speed;
    env->right_y = puffer_clamp(env->right_y + speed * direction, 0, (float)env->height);
    env->left_y = puffer_clamp(env->ball_y, env->left_y - speed, env->left_y + speed);
    env->ball_x += env->velocity_x;
    env->ball_y += env->velocity_y;
}

static inline bool pong_touches(const Pong *env, float paddle_y) {
    const float half = 0.5f * (float)env->paddle_height;
    return paddle_y - half < env->ball_y + (float)env->ball_size && env->ball_y < paddle_y + half;
}

/* A ball at the upper or lower edge stops there and leaves in the next frame. */
static inline void pong_bounce_off_edges(Pong *env) {
    const float top = (float)(env->height - env->ball_size);
    if (env->ball_y >= 0 && env->ball_y <= top) return;
    env->velocity_y = -env->velocity_y;
    env->ball_y = puffer_clamp(env->ball_y, 0, top);
}

static inline void pong_return_ball(Pong *env, float direction) {
    const float limit = env->max_ball_speed_y;
    env->velocity_y = puffer_clamp(env->velocity_y + env->spin * direction, -limit, limit);
    /* A level ball would be returned forever. */
    const bool level = env->velocity_y * env->velocity_y < 1e-4f;
    if (level) env->velocity_y = puffer_clamp(env->spin, 0, limit);
    env->game.rewards[0] += 0.1f;
}

/* Lets the ball cross or hit the left or right edge. Returns true if a point was scored. */
static inline bool pong_reach_side(Pong *env, float direction) {
    const float right = (float)(env->width - env->ball_size);
    if (env->ball_x >= 0 && env->ball_x <= right) return false;
    const bool at_left = env->ball_x < 0;
    if (!pong_touches(env, at_left ? env->left_y : env->right_y)) {
        env->left_points += !at_left;
        env->right_points += at_left;
        env->game.rewards[0] += at_left ? 1 : -1;
        return true;
    }
    env->ball_x = at_left ? 0 : right;
    env->velocity_x = -env->velocity_x;
    if (!at_left) pong_return_ball(env, direction);
    return false;
}

static inline PufferOutcome pong_outcome(Pong *env) {
    const bool won = env->right_points == env->max_score, lost = env->left_points == env->max_score;
    if (!won && !lost && env->frames < env->max_frames) return PUFFER_RUNNING;
    const int32_t points = env->left_points + env->right_points;
    env->score = (float)(env->right_points - env->left_points);
    env->perf = points > 0 ? (float)env->right_points / (float)points : 0;
    return won || lost ? PUFFER_TERMINATED : PUFFER_TRUNCATED;
}

static inline PufferOutcome pong_step(Pong *env) {
    const float direction = pong_direction(env);
    for (int32_t frame = 0; frame < env->frameskip; frame++) {
        env->frames++;
        pong_move(env, direction);
        pong_bounce_off_edges(env);
        if (pong_reach_side(env, direction)) {
            pong_serve(env);
            break;
        }
    }
    pong_observe(env);
    return pong_outcome(env);
}

#endif
