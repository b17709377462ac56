"""What results rest on: chains of manifests, audits of cells, recorded studies that are made again."""
