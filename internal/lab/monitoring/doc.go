// Package monitoring tests docs/monitoring.md, the rules for Prometheus in docs/monitoring and the
// dashboard in docs/grafana.json.
//
// What they name must exist. Prometheus itself judges the rules and their times, and reads the
// metrics of three boards in network namespaces while these lose cables, services and daemons: then those alerts fire
// that should, and no others. HAProxy asks the boards as the page says. There are only tests here.
package monitoring
