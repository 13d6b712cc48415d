/** The options that every server of this process has, under `preamp serve` and under `deno serve`. */
import type { Redactor } from "../policy/redact.ts";
import type { PreampOptions } from "../server/mod.ts";
import type { Log } from "./log.ts";
import type { Settings } from "./settings.ts";

/** Returns the options from the settings. `secrets` are redacted everywhere. */
export function serverOptions(
  { policy, plans, home, sources }: Settings,
  secrets: Redactor,
  log: Log,
): PreampOptions {
  return {
    policy,
    plans,
    home,
    sources,
    secrets,
    log: (record) => log.request(record),
    runtime_log: (level, event, facts) => log.note(level, event, facts),
  };
}
