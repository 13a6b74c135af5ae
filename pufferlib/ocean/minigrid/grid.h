/* A world of MiniGrid: its cells, and how levels draw random numbers and place things in it. Levels of your own
 * use these functions too (`puffer new NAME --template minigrid`). */
#ifndef MINIGRID_GRID_H
#define MINIGRID_GRID_H

#include "instruction.h"
#include "puffer_env.h"
#include "puffer_numpy.h"

/* Kinds, colors and states of cells, with the numbers of the observation. */
enum {
    MINIGRID_UNSEEN,
    MINIGRID_EMPTY,
    MINIGRID_WALL,
    MINIGRID_FLOOR,
    MINIGRID_DOOR,
    MINIGRID_KEY,
    MINIGRID_BALL,
    MINIGRID_BOX,
    MINIGRID_GOAL,
    MINIGRID_LAVA
};
enum {
    MINIGRID_RED,
    MINIGRID_GREEN,
    MINIGRID_BLUE,
    MINIGRID_PURPLE,
    MINIGRID_YELLOW,
    MINIGRID_GREY,
    MINIGRID_COLORS
};
enum { MINIGRID_OPEN, MINIGRID_CLOSED, MINIGRID_LOCKED }; /* of a door, otherwise 0 */

/* Directions of the agent, and sides of a room. */
enum { MINIGRID_EAST, MINIGRID_SOUTH, MINIGRID_WEST, MINIGRID_NORTH, MINIGRID_DIRECTIONS };

enum {
    MINIGRID_LEFT,
    MINIGRID_RIGHT,
    MINIGRID_FORWARD,
    MINIGRID_PICK_UP,
    MINIGRID_DROP,
    MINIGRID_TOGGLE,
    MINIGRID_DONE,
    MINIGRID_ACTIONS
};

enum { MINIGRID_MAX_OBSTACLES = 8 };

typedef struct {
    uint8_t kind, color, state; /* as observed */
    uint8_t inside; /* of a box: 1 + the color of the key in it, 0 if it is empty. Marks in follow.h */
} MiniGridCell;

typedef struct {
    int32_t x, y;
} MiniGridPlace;

typedef struct {
    int32_t x, y, width, height;
} MiniGridArea;

typedef struct MiniGrid MiniGrid;
typedef struct MiniGridLevel MiniGridLevel;
typedef struct MiniGridGrammar MiniGridGrammar; /* grammar.h */

/* What ends an episode. */
typedef enum {
    MINIGRID_REACH,     /* success on the goal, failure in lava */
    MINIGRID_DODGE,     /* success on the goal, a collision when walking into anything else */
    MINIGRID_FETCH,     /* success if `object` is carried, failure with any other */
    MINIGRID_GO_TO,     /* success for "done" next to `target`, failure elsewhere and for "toggle" */
    MINIGRID_GET,       /* success if `object` was picked up */
    MINIGRID_UNLOCK,    /* success if the door is open */
    MINIGRID_PUT_NEAR,  /* success if `object` was dropped next to `target`, otherwise failure */
    MINIGRID_OPEN_BOTH, /* when the blue door opens: success if the door at `target` is open, or failure */
    MINIGRID_MATCH,     /* success at `target`, failure at the other end of the corridor */
    MINIGRID_FOLLOW,    /* success if the instruction was followed */
    MINIGRID_OWN,       /* what the function `judge` of the level returns */
} MiniGridTask;

typedef enum { MINIGRID_CONTINUES, MINIGRID_SUCCEEDS, MINIGRID_FAILS, MINIGRID_COLLIDES } MiniGridResult;

/* Judges an action that was carried out. `had` is what the agent carried before it. */
typedef MiniGridResult (*MiniGridJudge)(MiniGrid *env, int32_t action, MiniGridCell had);

/* A kind of level. */
typedef struct {
    void (*generate)(MiniGrid *env, const MiniGridLevel *level);
    MiniGridTask task;
    const char *mission; /* with signs that minigrid_mission replaces */
    bool see_through_walls;
} MiniGridWorld;

/* A row of the table in levels.h. The fields after `max_steps` are for `generate`. The arrays of a known world
 * are as large as its levels in that table need, so larger levels need a world of your own. */
struct MiniGridLevel {
    const char *id;
    const MiniGridWorld *world;
    int32_t width, height;
    int32_t max_steps; /* 0: the time to cross all rooms, for each way of the instruction */
    int32_t count;     /* of rivers, obstacles, objects, doors, rooms or quarters */
    int32_t room_size; /* with walls. The largest one in MultiRoom */
    int32_t row;       /* of the second strip of lava */
    int32_t column;    /* of the room in a maze where the agent starts */
    bool is_random;    /* where the agent starts, or how long a corridor is */
    bool is_boxed;     /* keys are in boxes */
    bool is_blocked;   /* balls are in front of locked doors, or something is in the way */
    bool keys_last;    /* keys are placed after balls, which therefore cannot replace them */
    bool is_strict;    /* opening or picking up anything else is a failure */
    bool are_open;     /* doors are open at the start */
    bool is_carrying;  /* the agent carries an object from the first step on */
    MiniGridVerb verb;
    const MiniGridGrammar *grammar; /* of random sentences */
    MiniGridJudge judge;            /* of MINIGRID_OWN */
};

struct MiniGrid {
    PufferGame game;
    /* parameters */
    int32_t level, max_steps, agent_view_size;
    bool see_through_walls, mission;
    /* metrics */
    float score, perf;
    double exact_return;
    /* state */
    MiniGridPlace position;
    int32_t direction;
    MiniGridCell carried;       /* MINIGRID_EMPTY if nothing is */
    MiniGridCell object, other; /* of the mission */
    MiniGridPlace target;
    int32_t opening;       /* first words of a mission to fetch */
    bool is_full;          /* a level of your own had no free place */
    bool has_emptied;      /* empty cells may have marks, see follow.h */
    int32_t own_max_steps; /* of the episode */
    MiniGridInstruction instruction;
    int32_t width, height;
    PufferGenerator generator;
    MiniGridPlace obstacles[MINIGRID_MAX_OBSTACLES];
    MiniGridCell cells[]; /* [height][width] */
};

static const MiniGridCell minigrid_empty = {MINIGRID_EMPTY, 0, 0, 0};
static const MiniGridCell minigrid_wall = {MINIGRID_WALL, MINIGRID_GREY, 0, 0};
static const MiniGridCell minigrid_goal = {MINIGRID_GOAL, MINIGRID_GREEN, 0, 0};
static const MiniGridCell minigrid_lava = {MINIGRID_LAVA, MINIGRID_RED, 0, 0};

static inline MiniGridCell minigrid_thing(int32_t kind, int32_t color) {
    return (MiniGridCell){(uint8_t)kind, (uint8_t)color, 0, 0};
}

static inline MiniGridCell minigrid_door(int32_t color, int32_t state) {
    return (MiniGridCell){MINIGRID_DOOR, (uint8_t)color, (uint8_t)state, 0};
}

static inline bool minigrid_is_same(MiniGridCell a, MiniGridCell b) {
    return a.kind == b.kind && a.color == b.color;
}

static inline bool minigrid_is_open(MiniGridCell cell) {
    return cell.kind == MINIGRID_DOOR && cell.state == MINIGRID_OPEN;
}

static inline MiniGridCell *minigrid_at(MiniGrid *env, MiniGridPlace place) {
    return &env->cells[place.y * env->width + place.x];
}

static inline MiniGridPlace minigrid_next(MiniGridPlace place, int32_t direction) {
    static const MiniGridPlace steps[MINIGRID_DIRECTIONS] = {{1, 0}, {0, 1}, {-1, 0}, {0, -1}};
    return (MiniGridPlace){place.x + steps[direction].x, place.y + steps[direction].y};
}

static inline MiniGridPlace minigrid_front(const MiniGrid *env) {
    return minigrid_next(env->position, env->direction);
}

static inline bool minigrid_is_place(MiniGridPlace a, MiniGridPlace b) {
    return a.x == b.x && a.y == b.y;
}

/* Returns the larger of the distances along the two axes. It is 1 for all eight neighbors. */
static inline int32_t minigrid_far(MiniGridPlace a, MiniGridPlace b) {
    const int32_t dx = a.x > b.x ? a.x - b.x : b.x - a.x, dy = a.y > b.y ? a.y - b.y : b.y - a.y;
    return dx > dy ? dx : dy;
}

/* Returns the sum of the distances along the two axes. */
static inline int32_t minigrid_steps(MiniGridPlace a, MiniGridPlace b) {
    const int32_t dx = a.x > b.x ? a.x - b.x : b.x - a.x, dy = a.y > b.y ? a.y - b.y : b.y - a.y;
    return dx + dy;
}

/* ---- Walls --------------------------------------------------------------------------------------------- */

static inline void minigrid_put(MiniGrid *env, int32_t x, int32_t y, MiniGridCell cell) {
    *minigrid_at(env, (MiniGridPlace){x, y}) = cell;
}

static inline void minigrid_fill(MiniGrid *env, MiniGridArea area, MiniGridCell cell) {
    for (int32_t y = area.y; y < area.y + area.height; y++) {
        for (int32_t x = area.x; x < area.x + area.width; x++) minigrid_put(env, x, y, cell);
    }
}

static inline void minigrid_fill_row(MiniGrid *env, int32_t x, int32_t y, int32_t length, MiniGridCell cell) {
    minigrid_fill(env, (MiniGridArea){x, y, length, 1}, cell);
}

static inline void minigrid_fill_column(MiniGrid *env, int32_t x, int32_t y, int32_t length,
                                        MiniGridCell cell) {
    minigrid_fill(env, (MiniGridArea){x, y, 1, length}, cell);
}

static inline void minigrid_surround(MiniGrid *env, MiniGridArea area) {
    minigrid_fill_row(env, area.x, area.y, area.width, minigrid_wall);
    minigrid_fill_row(env, area.x, area.y + area.height - 1, area.width, minigrid_wall);
    minigrid_fill_column(env, area.x, area.y, area.height, minigrid_wall);
    minigrid_fill_column(env, area.x + area.width - 1, area.y, area.height, minigrid_wall);
}

static inline MiniGridArea minigrid_everywhere(const MiniGrid *env) {
    return (MiniGridArea){0, 0, env->width, env->height};
}

/* ---- Random numbers ------------------------------------------------------------------------------------ */

/* Draws from [low, end). NumPy draws nothing if there is only one number. */
static inline int32_t minigrid_random(MiniGrid *env, int32_t low, int32_t end) {
    if (end - low == 1) return low;
    return low + (int32_t)puffer_integer(&env->generator, (uint32_t)(end - low));
}

/* Colors in the order of their names, from which the package chooses. */
static const uint8_t minigrid_sorted_colors[MINIGRID_COLORS] = {
    MINIGRID_BLUE, MINIGRID_GREEN, MINIGRID_GREY, MINIGRID_PURPLE, MINIGRID_RED, MINIGRID_YELLOW};

static inline int32_t minigrid_random_color(MiniGrid *env) {
    return minigrid_sorted_colors[minigrid_random(env, 0, MINIGRID_COLORS)];
}

/* Draws all colors in random order. */
static inline void minigrid_random_colors(MiniGrid *env, uint8_t colors[MINIGRID_COLORS]) {
    uint8_t rest[MINIGRID_COLORS];
    memcpy(rest, minigrid_sorted_colors, sizeof rest);
    for (int32_t i = 0; i < MINIGRID_COLORS; i++) {
        const int32_t drawn = minigrid_random(env, 0, MINIGRID_COLORS - i);
        colors[i] = rest[drawn];
        memmove(rest + drawn, rest + drawn + 1, (size_t)(MINIGRID_COLORS - i - 1 - drawn));
    }
}

/* Draws a key or a ball or, if `kinds` is 3, a box. */
static inline MiniGridCell minigrid_random_thing(MiniGrid *env, int32_t kinds) {
    const int32_t kind = MINIGRID_KEY + minigrid_random(env, 0, kinds);
    return minigrid_thing(kind, minigrid_random_color(env));
}

static inline int32_t minigrid_random_x(MiniGrid *env, MiniGridArea area) {
    const int32_t end = area.x + area.width;
    return minigrid_random(env, area.x, end < env->width ? end : env->width);
}

static inline int32_t minigrid_random_y(MiniGrid *env, MiniGridArea area) {
    const int32_t end = area.y + area.height;
    return minigrid_random(env, area.y, end < env->height ? end : env->height);
}

/* Draws a place, and returns true if it is empty and without the agent. */
static inline bool minigrid_random_free(MiniGrid *env, MiniGridArea area, MiniGridPlace *place) {
    place->x = minigrid_random_x(env, area);
    place->y = minigrid_random_y(env, area);
    return minigrid_at(env, *place)->kind == MINIGRID_EMPTY && !minigrid_is_place(*place, env->position);
}

/* Returns the first free place, or the first place if none is free. */
static inline MiniGridPlace minigrid_first_free(MiniGrid *env, MiniGridArea area) {
    for (int32_t y = area.y; y < area.y + area.height && y < env->height; y++) {
        for (int32_t x = area.x; x < area.x + area.width && x < env->width; x++) {
            const MiniGridPlace place = {x, y};
            if (minigrid_at(env, place)->kind == MINIGRID_EMPTY && !minigrid_is_place(place, env->position))
                return place;
        }
    }
    env->is_full = true;
    return (MiniGridPlace){area.x, area.y};
}

/* Puts a cell on a random free place. Some levels of the package give up after 100 or 1,000 tries, with an
 * error. That happens in fewer than one of 10^12 episodes. */
static inline MiniGridPlace minigrid_place(MiniGrid *env, MiniGridArea area, MiniGridCell cell) {
    enum { TRIES = 100000 };
    MiniGridPlace place;
    int32_t tries = 0;
    while (!minigrid_random_free(env, area, &place)) {
        if (++tries == TRIES) {
            place = minigrid_first_free(env, area);
            break;
        }
    }
    *minigrid_at(env, place) = cell;
    return place;
}

static inline void minigrid_place_agent(MiniGrid *env, MiniGridArea area) {
    env->position = (MiniGridPlace){-1, -1};
    env->position = minigrid_place(env, area, minigrid_empty);
    env->direction = minigrid_random(env, 0, MINIGRID_DIRECTIONS);
}

#endif
