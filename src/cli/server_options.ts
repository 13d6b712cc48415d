/** The options that every server of this process has, under `preamp serve` and under `deno serve`. */
import type { Redactor } from "../policy/redact.ts";
import type { PreampOptions } from "../server/mod.ts";
import type { Log } from "./log.ts";
import type { Settings } from "./settings.ts";
import { openSettingsStore } from "./store.ts";

/** Returns the options from the settings. `secrets` are redacted everywhere. */
export async function serverOptions(settings: Settings, secrets: Redactor, log: Log): Promise<PreampOptions> {
  const { policy, plans, home, sources } = settings;
  const { store, warning } = await openSettingsStore(settings, true);
  if (warning !== null) log.note("warning", "store", { message: warning });
  return {
    ...(store ? { store } : {}),
    policy,
    plans,
    home,
    sources,
    secrets,
    log: (record) => log.request(record),
    runtime_log: (level, event, facts) => log.note(level, event, facts),
  };
}
