/* Play breakout with a trained agent in plain C. In a checkout, after `puffer train breakout`:
 *
 *     puffer export breakout --to c --out agent.c --header
 *     cc -O2 -I. -Ipufferlib/native -Ipufferlib/ocean examples/deploy/breakout_agent.c agent.c -lm -o play
 *     ./play
 */
#include <stdio.h>

#include "agent.h"
#include "breakout/breakout.h"
#include "puffer_batch.h"

enum { GAMES = 20 };

int main(void) {
    static breakout_agent agent;
    static Breakout game;
    float observation[118], reward = 0;
    bool mask = true;
    int32_t action = 0, steps = 0, points = 0;

    for (size_t i = 0; i < sizeof(breakout_parameters) / sizeof(*breakout_parameters); i++)
        puffer_set_default((char *)&game, &breakout_parameters[i]);
    game.game.observations = observation;
    game.game.actions = &action;
    game.game.rewards = &reward;
    game.game.masks = &mask;
    puffer_seed(&game.game.rng, 1);

    breakout_agent_init(&agent, 1);
    for (int episode = 0; episode < GAMES; episode++) {
        PufferOutcome outcome = PUFFER_RUNNING;
        breakout_reset(&game);
        breakout_agent_reset(&agent);
        for (; outcome == PUFFER_RUNNING; steps++) {
            breakout_agent_act(&agent, observation, &action);
            reward = 0;
            outcome = breakout_step(&game);
        }
        points += game.points;
    }
    printf("%d games, %d steps: %.1f points a game\n", GAMES, steps, (double)points / GAMES);
    return 0;
}
