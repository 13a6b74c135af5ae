from pufferlib.selfplay.league import League as League
from pufferlib.selfplay.round_robin import CrossTable as CrossTable, fit_ratings as fit_ratings, match as match
