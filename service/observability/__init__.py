"""What watches the service: Prometheus rules and Grafana dashboards, generated from code."""
