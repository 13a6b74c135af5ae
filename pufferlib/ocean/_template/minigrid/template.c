/* Template: carry a ball through a door to the goal. A level of your own in the world of MiniGrid.
 *
 * Observation  the bytes of minigrid/minigrid.h: direction and view of the agent
 * Actions      Discrete(7): 0 turn left, 1 turn right, 2 go forward, 3 pick up, 4 drop, 5 open or close, 6 done
 * Rewards      1 - 0.9 * steps / max_steps at the goal with the ball, 0 otherwise
 * Ends         terminal at the goal with the ball, truncation after max_steps steps
 *
 * minigrid/grid.h has the functions that make a level. minigrid/one_room.h and minigrid/room_grid.h use them for
 * the known levels. Instead of MINIGRID_OWN, a world can have a known task, such as MINIGRID_REACH. */
#include "minigrid/grid.h"

/* Makes an episode. A wall with a door divides the room. The cells are empty before. */
static void template_generate(MiniGrid *env, const MiniGridLevel *level) {
    const int32_t wall = minigrid_random(env, 3, level->width - 3);
    const int32_t door = minigrid_random(env, 1, level->height - 1);
    const MiniGridArea left = {1, 1, wall - 1, level->height - 2};
    const MiniGridArea right = {wall + 1, 1, level->width - wall - 2, level->height - 2};
    minigrid_surround(env, minigrid_everywhere(env));
    minigrid_fill_column(env, wall, 1, level->height - 2, minigrid_wall);
    minigrid_put(env, wall, door, minigrid_door(MINIGRID_YELLOW, MINIGRID_CLOSED));
    minigrid_place(env, right, minigrid_goal);
    env->object = minigrid_thing(MINIGRID_BALL, minigrid_random_color(env));
    minigrid_place(env, left, env->object);
    minigrid_place_agent(env, left);
}

/* Judges an action that was carried out. `had` is what the agent carried before it. */
static MiniGridResult template_judge(MiniGrid *env, int32_t action, MiniGridCell had) {
    (void)action, (void)had;
    const bool is_at_goal = minigrid_at(env, env->position)->kind == MINIGRID_GOAL;
    return is_at_goal && minigrid_is_same(env->carried, env->object) ? MINIGRID_SUCCEEDS : MINIGRID_CONTINUES;
}

/* %o in the mission is the name of env->object. */
static const MiniGridWorld template_world = {template_generate, MINIGRID_OWN,
                                             "carry the %o to the green goal", .see_through_walls = false};

/* The levels, from which the parameter `level` chooses: name, world, width, height. */
static const MiniGridLevel template_levels[] = {
    {"small", &template_world, 7, 5, .max_steps = 140, .judge = template_judge},
    {"large", &template_world, 13, 9, .max_steps = 470, .judge = template_judge},
};
#define MINIGRID_OWN_LEVELS template_levels
#include "minigrid/minigrid.c"
