from pufferlib.exports.exported import Exported as Exported, export as export
from pufferlib.exports.trained import TrainedPolicy as TrainedPolicy, open_trained as open_trained
