/* Breakout: keep the ball in play with a paddle and destroy all bricks of two successive walls.
 *
 * The field is `width` by `height` px, and y points down. The wall starts 50 px below the ceiling. Its rows
 * give 7, 4 and 1 points, a third each from the top. A step simulates `frameskip` frames of 1/60 s.
 *
 * Observation  float[10 + brick_rows * brick_columns]:
 *              - x and y of the paddle, x and y of the ball, as fractions of the field
 *              - velocity of the ball over 512 px/s, in [-1, 1]
 *              - 1 once the ball is launched
 *              - points over the maximum
 *              - balls in reserve and width of the paddle, as fractions of their initial values
 *              - for each brick, row by row from the top, 1 once it is destroyed
 * Actions      Discrete(3): 0 stay, 1 left, 2 right. Any other number stays. With `continuous`, Box(1): speed
 *              of the paddle as a fraction of 620 px/s, clamped to [-1, 1].
 * Rewards      points of the bricks hit in the step, times reward_per_point. A lost ball costs nothing.
 * Ends         terminal when a ball is lost with none in reserve, and when both walls are destroyed.
 *              Truncation after the step that reaches max_frames.
 * Rules        The first frame of a round launches the ball downwards, to the left or right at random. The
 *              paddle returns it at up to 45 degrees to either side, depending on where it was hit. Every
 *              fourth return is 64 px/s faster. After a brick in the upper half of the wall, returns have the
 *              maximum speed. Hitting the ceiling halves the paddle until the ball is lost. The second wall
 *              appears with the first return after the first wall is destroyed.
 * Source       PufferLib's Breakout. There nothing limits a ball that never hits a brick again, and the step
 *              that ends an episode already plays the next one. Here both end the step. */
#ifndef BREAKOUT_H
#define BREAKOUT_H

#include <math.h>

#include "puffer_env.h"

#define BREAKOUT_FRAME_S     (1.0f / 60.0f)
#define BREAKOUT_SPEED       256.0f /* initial speed of the ball, px/s */
#define BREAKOUT_SPEED_GAIN  64.0f
#define BREAKOUT_SPEED_MAX   448.0f
#define BREAKOUT_SPEED_UNIT  512.0f    /* scale of the observed velocity */
#define BREAKOUT_LAUNCH_X    0.822984f /* sine and cosine of pi / 3.25 */
#define BREAKOUT_LAUNCH_Y    0.568065f
#define BREAKOUT_PADDLE_STEP (620.0f * BREAKOUT_FRAME_S) /* px per frame */

enum { BREAKOUT_STAY, BREAKOUT_LEFT, BREAKOUT_RIGHT };
enum { BREAKOUT_WALL_TOP = 50, BREAKOUT_PADDLE_GAP = 10, BREAKOUT_START_ABOVE_MIDDLE = 30 }; /* px */
enum { BREAKOUT_MAX_ROWS = 32, BREAKOUT_MAX_COLUMNS = 64, BREAKOUT_SCALARS = 10 };

typedef struct {
    PufferGame game;
    /* parameters, lengths in px */
    int32_t width, height;
    int32_t paddle_width, paddle_height, ball_size;
    int32_t brick_width, brick_height, brick_rows, brick_columns;
    int32_t balls, max_frames, frameskip;
    float reward_per_point;
    bool continuous;
    /* metrics */
    float score, perf;
    /* state; positions are upper left corners */
    float paddle_x, paddle_size; /* paddle_size: the current width */
    float ball_x, ball_y;
    float velocity_x, velocity_y; /* px/s */
    float speed;                  /* of the next return, px/s */
    int32_t balls_left, returns, points, walls, frames;
    int32_t wall_points; /* points of a whole wall */
    bool launched;
    uint64_t bricks[BREAKOUT_MAX_ROWS]; /* bit i: the brick in column i exists */
} Breakout;

static const char breakout_about[] = "Keep the ball in play and knock all bricks out of the wall, twice.";

/* clang-format off */
static const PufferParameter breakout_parameters[] = {
    PUFFER_PARAMETER(Breakout, width, 576, 32, 2048, "width of the field, px"),
    PUFFER_PARAMETER(Breakout, height, 330, 64, 2048, "height of the field, px"),
    PUFFER_PARAMETER(Breakout, paddle_width, 62, 2, 2048, "width of the paddle at first, px"),
    PUFFER_PARAMETER(Breakout, paddle_height, 8, 1, 256, "height of the paddle, px"),
    PUFFER_PARAMETER(Breakout, ball_size, 32, 1, 256, "side of the ball, px"),
    PUFFER_PARAMETER(Breakout, brick_width, 32, 1, 1024, "width of a brick, px"),
    PUFFER_PARAMETER(Breakout, brick_height, 12, 1, 1024, "height of a brick, px"),
    PUFFER_PARAMETER(Breakout, brick_rows, 6, 1, BREAKOUT_MAX_ROWS, "rows of bricks"),
    PUFFER_PARAMETER(Breakout, brick_columns, 18, 1, BREAKOUT_MAX_COLUMNS, "columns of bricks"),
    PUFFER_PARAMETER(Breakout, balls, 5, 0, 1000, "balls in reserve"),
    PUFFER_PARAMETER(Breakout, max_frames, 36000, 1, 100000000, "frames until the game is cut off"),
    PUFFER_PARAMETER(Breakout, frameskip, 4, 1, 1000, "frames that a step plays"),
    PUFFER_PARAMETER(Breakout, reward_per_point, 1, 0, 1000, "reward for a point"),
    PUFFER_PARAMETER(Breakout, continuous, false, false, true, "actions are speeds instead of directions"),
};

static const PufferMetric breakout_metrics[] = {
    PUFFER_METRIC(Breakout, score, "points"),
    PUFFER_METRIC(Breakout, perf, "points as a share of the most there are"),
};
/* clang-format on */

static inline const char *breakout_spec(const Breakout *env, PufferSpec *spec) {
    const int32_t start = env->height / 2 - BREAKOUT_START_ABOVE_MIDDLE;
    if (env->paddle_width > env->width || env->ball_size > env->width) {
        return "paddle_width and ball_size must be at most width";
    }
    if (env->brick_columns * env->brick_width > env->width) {
        return "brick_columns times brick_width must be at most width";
    }
    if (BREAKOUT_WALL_TOP + env->brick_rows * env->brick_height > start) {
        return "50 px plus brick_rows times brick_height must be at most half the height minus 30 px";
    }
    if (start + env->ball_size > env->height - env->paddle_height - BREAKOUT_PADDLE_GAP) {
        return "ball_size plus paddle_height must be at most half the height plus 20 px";
    }
    *spec = (PufferSpec){
        .observation_type = PUFFER_FLOAT32,
        .observation_shape = {BREAKOUT_SCALARS + env->brick_rows * env->brick_columns},
        .observation_low = -1,
        .observation_high = 1,
        .action_kind = env->continuous ? PUFFER_BOX : PUFFER_DISCRETE,
        .action_sizes = {env->continuous ? 1 : 3},
        .agents = 1,
        .picture_width = env->width,
        .picture_height = env->height,
        .frames_per_second = 60.0f / (float)env->frameskip,
    };
    return NULL;
}

static inline float breakout_paddle_y(const Breakout *env) {
    return (float)(env->height - env->paddle_height - BREAKOUT_PADDLE_GAP);
}

static inline int32_t breakout_row_points(const Breakout *env, int32_t row) {
    static const int32_t points[3] = {7, 4, 1};
    return points[row * 3 / env->brick_rows];
}

static inline int32_t breakout_wall_points(const Breakout *env) {
    int32_t points = 0;
    for (int32_t row = 0; row < env->brick_rows; row++) points += breakout_row_points(env, row);
    return points * env->brick_columns;
}

static inline void breakout_build_wall(Breakout *env) {
    float *gone = (float *)env->game.observations + BREAKOUT_SCALARS;
    const size_t num_bricks = (size_t)(env->brick_rows * env->brick_columns);
    for (int32_t row = 0; row < env->brick_rows; row++)
        env->bricks[row] = UINT64_MAX >> (64 - env->brick_columns);
    memset(gone, 0, num_bricks * sizeof(float));
    env->walls++;
}

static inline void breakout_begin_round(Breakout *env) {
    env->paddle_size = (float)env->paddle_width;
    env->paddle_x = 0.5f * (float)(env->width - env->paddle_width);
    env->ball_x = 0.5f * (float)(env->width - env->ball_size);
    env->ball_y = (float)(env->height / 2 - BREAKOUT_START_ABOVE_MIDDLE);
    env->velocity_x = env->velocity_y = 0;
    env->speed = BREAKOUT_SPEED;
    env->returns = 0;
    env->launched = false;
}

/* Writes everything except the bricks, which are written when they change. */
static inline void breakout_observe(Breakout *env) {
    float *observation = env->game.observations;
    const float width = (float)env->width, height = (float)env->height;
    observation[0] = env->paddle_x / width;
    observation[1] = breakout_paddle_y(env) / height;
    observation[2] = env->ball_x / width;
    observation[3] = env->ball_y / height;
    observation[4] = env->velocity_x / BREAKOUT_SPEED_UNIT;
    observation[5] = env->velocity_y / BREAKOUT_SPEED_UNIT;
    observation[6] = env->launched;
    observation[7] = (float)env->points / (float)(2 * env->wall_points);
    observation[8] = env->balls > 0 ? (float)env->balls_left / (float)env->balls : 0;
    observation[9] = env->paddle_size / (float)env->paddle_width;
}

static inline void breakout_reset(Breakout *env) {
    env->wall_points = breakout_wall_points(env);
    env->points = env->walls = env->frames = 0;
    env->balls_left = env->balls;
    breakout_build_wall(env);
    breakout_begin_round(env);
    breakout_observe(env);
}

/* ---- First contact of the ball in a frame ---------------------------------------------------------- */

typedef enum {
    BREAKOUT_NOTHING,
    BREAKOUT_SIDE,
    BREAKOUT_CEILING,
    BREAKOUT_PADDLE,
    BREAKOUT_BRICK
} BreakoutObstacle;

typedef struct {
    BreakoutObstacle obstacle;
    float time;    /* fraction of the frame, in [0, 1] */
    float overlap; /* length of the common edge, px; of two bricks hit together, the longer edge counts */
    bool sideways; /* hit with its left or right side */
    int32_t row, column;
} BreakoutContact;

static inline void breakout_meet_walls(const Breakout *env, float dx, float dy, BreakoutContact *first) {
    const float right = (float)(env->width - env->ball_size);
    if (env->ball_x + dx < 0 || env->ball_x + dx > right) {
        float time = ((dx < 0 ? 0 : right) - env->ball_x) / dx;
        *first = (BreakoutContact){.obstacle = BREAKOUT_SIDE, .time = time > 0 ? time : 0, .sideways = true};
    }
    if (env->ball_y + dy < 0) {
        float time = env->ball_y > 0 ? env->ball_y / -dy : 0;
        if (time < first->time) *first = (BreakoutContact){.obstacle = BREAKOUT_CEILING, .time = time};
    }
}

/* Only the top of the paddle returns the ball. */
static inline void breakout_meet_paddle(const Breakout *env, float dx, float dy, BreakoutContact *first) {
    const float top = breakout_paddle_y(env) - (float)env->ball_size;
    if (env->ball_y > top || env->ball_y + dy < top || dy <= 0) return;
    const float time = (top - env->ball_y) / dy;
    const float x = env->ball_x + dx * time;
    const bool beside = x + (float)env->ball_size < env->paddle_x || x > env->paddle_x + env->paddle_size;
    if (!beside && time < first->time) *first = (BreakoutContact){.obstacle = BREAKOUT_PADDLE, .time = time};
}

/* Computes when a span of `size` px at `from`, moving by `move`, starts and stops overlapping [low, high]. */
static inline void breakout_sweep(float from, float size, float move, float low, float high, float *enter,
                                  float *leave) {
    if (move == 0) {
        const bool apart = from + size <= low || from >= high;
        *enter = apart ? INFINITY : -INFINITY;
        *leave = INFINITY;
        return;
    }
    *enter = (move > 0 ? low - (from + size) : high - from) / move;
    *leave = (move > 0 ? high - from : low - (from + size)) / move;
}

static inline void breakout_meet_brick(const Breakout *env, float dx, float dy, int32_t row, int32_t column,
                                       BreakoutContact *first) {
    const float size = (float)env->ball_size;
    const float left = (float)(column * env->brick_width), right = left + (float)env->brick_width;
    const float top = (float)(BREAKOUT_WALL_TOP + row * env->brick_height),
                bottom = top + (float)env->brick_height;
    float enter_x, leave_x, enter_y, leave_y;
    breakout_sweep(env->ball_x, size, dx, left, right, &enter_x, &leave_x);
    breakout_sweep(env->ball_y, size, dy, top, bottom, &enter_y, &leave_y);
    const bool sideways = enter_x > enter_y;
    const float time = sideways ? enter_x : enter_y;
    if (time < 0 || time > first->time || time >= puffer_min(leave_x, leave_y)) return;

    const float x = env->ball_x + dx * time, y = env->ball_y + dy * time;
    const float overlap = sideways ? puffer_min(y + size, bottom) - puffer_max(y, top)
                                   : puffer_min(x + size, right) - puffer_max(x, left);
    if (time == first->time && overlap <= first->overlap) return;
    *first = (BreakoutContact){BREAKOUT_BRICK, time, overlap, sideways, row, column};
}

static inline int32_t breakout_cell(float position, int32_t cell_size, int32_t num_cells) {
    int32_t cell = position < 0 ? 0 : (int32_t)position / cell_size;
    return cell < num_cells ? cell : num_cells - 1;
}

/* Checks the bricks in the box that the ball sweeps through. */
static inline void breakout_meet_bricks(const Breakout *env, float dx, float dy, BreakoutContact *first) {
    const float size = (float)env->ball_size;
    const float top = env->ball_y + puffer_min(dy, 0) - (float)BREAKOUT_WALL_TOP,
                bottom = top + size + fabsf(dy);
    if (bottom < 0 || top > (float)(env->brick_rows * env->brick_height)) return;
    const float left = env->ball_x + puffer_min(dx, 0), right = left + size + fabsf(dx);
    const int32_t first_row = breakout_cell(top, env->brick_height, env->brick_rows);
    const int32_t last_row = breakout_cell(bottom, env->brick_height, env->brick_rows);
    const int32_t first_column = breakout_cell(left, env->brick_width, env->brick_columns);
    const int32_t last_column = breakout_cell(right, env->brick_width, env->brick_columns);
    for (int32_t row = first_row; row <= last_row; row++) {
        for (int32_t column = first_column; column <= last_column; column++) {
            if (env->bricks[row] >> column & 1) breakout_meet_brick(env, dx, dy, row, column, first);
        }
    }
}

/* ---- Consequences of a contact --------------------------------------------------------------------- */

static inline void breakout_hit_brick(Breakout *env, int32_t row, int32_t column) {
    float *gone = (float *)env->game.observations + BREAKOUT_SCALARS;
    const int32_t points = breakout_row_points(env, row);
    env->bricks[row] &= ~((uint64_t)1 << column);
    gone[row * env->brick_columns + column] = 1;
    env->points += points;
    env->game.rewards[0] += env->reward_per_point * (float)points;
    if (2 * row < env->brick_rows) env->speed = BREAKOUT_SPEED_MAX;
}

static inline void breakout_return_ball(Breakout *env) {
    env->returns++;
    if (env->returns % 4 == 0) env->speed = puffer_min(env->speed + BREAKOUT_SPEED_GAIN, BREAKOUT_SPEED_MAX);
    /* Direction of the return: -1 at the left end of the paddle, 1 at the right, 45 degrees each. */
    const float middle = env->ball_x + 0.5f * (float)env->ball_size;
    const float slope = puffer_clamp(2 * (middle - env->paddle_x) / env->paddle_size - 1, -1, 1);
    const float up = env->speed / sqrtf(1 + slope * slope);
    env->velocity_x = slope * up;
    env->velocity_y = -up;
    if (env->walls == 1 && env->points == env->wall_points) breakout_build_wall(env);
}

static inline void breakout_halve_paddle(Breakout *env) {
    const float full = (float)env->paddle_width;
    if (env->paddle_size < full) return;
    env->paddle_size = 0.5f * full;
    env->paddle_x += 0.25f * full; /* keeps its center */
}

/* The ball stops at an obstacle and continues in the next frame. */
static inline void breakout_move_ball(Breakout *env) {
    const float dx = env->velocity_x * BREAKOUT_FRAME_S, dy = env->velocity_y * BREAKOUT_FRAME_S;
    BreakoutContact first = {.obstacle = BREAKOUT_NOTHING, .time = 1, .overlap = -1};
    breakout_meet_walls(env, dx, dy, &first);
    breakout_meet_paddle(env, dx, dy, &first);
    breakout_meet_bricks(env, dx, dy, &first);
    env->ball_x += dx * first.time;
    env->ball_y += dy * first.time;
    if (first.obstacle == BREAKOUT_NOTHING) return;
    if (first.obstacle == BREAKOUT_PADDLE) {
        breakout_return_ball(env);
        return;
    }
    if (first.sideways) {
        env->velocity_x = -env->velocity_x;
    } else {
        env->velocity_y = -env->velocity_y;
    }
    if (first.obstacle == BREAKOUT_CEILING) breakout_halve_paddle(env);
    if (first.obstacle == BREAKOUT_BRICK) breakout_hit_brick(env, first.row, first.column);
}

static inline void breakout_launch(Breakout *env) {
    const bool left = puffer_random_below(&env->game.rng, 2) == 0;
    env->velocity_x = (left ? -BREAKOUT_LAUNCH_X : BREAKOUT_LAUNCH_X) * env->speed;
    env->velocity_y = BREAKOUT_LAUNCH_Y * env->speed;
    env->launched = true;
}

/* Direction of the paddle, in [-1, 1]. */
static inline float breakout_direction(const Breakout *env) {
    if (env->continuous) return puffer_clamp(*(const float *)env->game.actions, -1, 1);
    const int32_t action = *(const int32_t *)env->game.actions;
    return (float)((action == BREAKOUT_RIGHT) - (action == BREAKOUT_LEFT));
}

/* Simulates one frame. Returns false if the episode is over. */
static inline bool breakout_play_frame(Breakout *env, float direction) {
    env->frames++;
    if (env->launched) {
        const float right = (float)env->width - env->paddle_size;
        env->paddle_x = puffer_clamp(env->paddle_x + BREAKOUT_PADDLE_STEP * direction, 0, right);
    } else {
        breakout_launch(env);
    }
    breakout_move_ball(env);
    if (env->points == 2 * env->wall_points) return false;
    if (env->ball_y <= breakout_paddle_y(env) + (float)env->paddle_height) return true;
    if (env->balls_left == 0) return false;
    env->balls_left--;
    breakout_begin_round(env);
    return true;
}

static inline PufferOutcome breakout_step(Breakout *env) {
    const float direction = breakout_direction(env);
    bool playing = true;
    for (int32_t frame = 0; playing && frame < env->frameskip; frame++) {
        playing = breakout_play_frame(env, direction);
    }
    breakout_observe(env);
    if (playing && env->frames < env->max_frames) return PUFFER_RUNNING;
    env->score = (float)env->points;
    env->perf = env->score / (float)(2 * env->wall_points);
    return playing ? PUFFER_TRUNCATED : PUFFER_TERMINATED;
}

#endif
