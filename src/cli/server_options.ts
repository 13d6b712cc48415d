/** Opens the store and returns the options of every server of this process, under `preamp serve` and `deno serve`. */
import type { Redactor } from "../policy/redact.ts";
import type { PreampOptions } from "../server/mod.ts";
import type { Log } from "./log.ts";
import type { Settings } from "./settings.ts";
import { openSettingsStore } from "./store.ts";

/**
 * Opens the store and returns the options from the settings. `secrets` are redacted everywhere.
 * @throws {UsageError} when the store cannot be opened.
 */
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
