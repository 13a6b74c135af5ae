"""Pictures, uint8 ``(height, width, 3)``, in windows, terminals and videos; of environments it knows nothing."""
