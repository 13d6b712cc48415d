/** Records the duration of each request under its route, and names its span by the route. */
import type { Metrics } from "../../telemetry/metrics.ts";
import type { OpenTelemetry } from "../../telemetry/open_telemetry.ts";
import type { Middleware } from "../context.ts";

const METHODS: ReadonlySet<string> = new Set(["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]);

/**
 * Records method, route, status and time until the headers of the answer. Labels have few values: requests
 * for other paths have the route `none`, other methods are `other`.
 */
export function observeRequests(metrics: Metrics, telemetry: OpenTelemetry | undefined): Middleware {
  return async (c, next) => {
    await next();
    const { env } = c;
    const { status, headers } = c.get("answer");
    const method = METHODS.has(env.method) ? env.method : "other";
    const labels = { method, route: env.route ?? "none", status: String(status) };
    const seconds = (env.server.clock.monotonic() - env.started) / 1000;
    metrics.record("preamp_http_request_duration_seconds", labels, seconds);
    const tracing = telemetry?.load();
    if (!tracing) return;
    (await tracing).nameRequest({ method, route: env.route, run_id: headers["preamp-run-id"] ?? null });
  };
}
