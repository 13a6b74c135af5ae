"""Display of images, uint8 ``(height, width, 3)``, in windows, terminals and videos."""
