from pufferlib.selfplay.league import League as League
from pufferlib.selfplay.ratings import fit_ratings as fit_ratings
from pufferlib.selfplay.round_robin import CrossTable as CrossTable, match as match
