/**
 * `preamp/deploy`: the plans of a folder as an HTTP API, for `deno serve` and Deno Deploy. `preamp init
 * --deploy` writes such a folder.
 *
 * ```ts ignore
 * import { serveAgent } from "preamp/deploy";
 *
 * export default serveAgent();
 * ```
 */
import { readVariable } from "../process/environment.ts";
import type { ConnectionInfo } from "../server/context.ts";
import type { Settings } from "../settings/settings.ts";
import type { AgentServer } from "./agent_server.ts";
import { isHosted } from "./host.ts";

export type { ConnectionInfo, Settings };

/** Options of {@link serveAgent}. */
export interface AgentOptions {
  /**
   * Folder of `preamp.yaml` and of the named plans, as a URL that ends in a slash. Default: that of the main
   * module.
   */
  folder?: URL;
  /** Reads the settings in another way than from `preamp.yaml` in `folder`, and the variables. */
  settings?: () => Promise<Settings>;
  /** Whether SIGTERM and SIGINT end runs and streams, and then the process. Default true. */
  signals?: boolean;
}

/** An agent's HTTP API; `deno serve` calls its `fetch`. */
export interface Agent {
  /** Answers a request. The first one opens the server; with invalid settings the answers are 500. */
  fetch(request: Request, info?: ConnectionInfo): Promise<Response>;
  /** Ends streams and runs. The runs continue at the next start, if the store lasts. */
  stop(): Promise<void>;
}

/** Milliseconds to send the last bytes of responses. */
const LINGER_MS = 1_000;

/** Signals that end the process; Windows has no SIGTERM. */
const SIGNALS: readonly Deno.Signal[] = Deno.build.os === "windows" ? ["SIGINT"] : ["SIGINT", "SIGTERM"];

/**
 * Returns an agent's HTTP API with all that a host needs (src/docs/deploy.md#deno-deploy): the database of
 * `DATABASE_URL` or `PGHOST`, bytes in silent responses, and each minute a look for runs whose instance has
 * ended. Settings are those of `preamp.yaml` and of variables such as `PREAMP_API_KEYS`. Call it when the
 * module is loaded, because a host finds scheduled work then.
 */
export function serveAgent(options: AgentOptions = {}): Agent {
  const { folder = new URL(".", Deno.mainModule), signals = true } = options;
  let server: Promise<AgentServer> | undefined;

  async function open(): Promise<AgentServer> {
    server ??= openServer(folder, options.settings);
    try {
      return await server;
    } catch (error) {
      server = undefined; // the next request tries again
      throw error;
    }
  }

  async function stop(): Promise<void> {
    await (await server)?.stop();
    Deno.unrefTimer(setTimeout(() => Deno.exit(0), LINGER_MS));
  }

  // Deno Deploy calls it in one of its instances
  if (typeof Deno.cron === "function" && isHosted(readVariable)) {
    Deno.cron("preamp-resume", "* * * * *", async () => await (await open()).resume());
  }
  // Deno ends `deno serve` after a signal once all connections are closed
  if (signals) { for (const signal of SIGNALS) Deno.addSignalListener(signal, () => void stop()); }
  return { fetch: async (request, info) => await (await open()).fetch(request, info), stop };
}

async function openServer(folder: URL, own: AgentOptions["settings"]): Promise<AgentServer> {
  const [{ openAgentServer }, { folderSettings }] = await Promise.all([
    import("./agent_server.ts"),
    import("./folder_settings.ts"),
  ]);
  return await openAgentServer({
    settings: own ?? (() => folderSettings(folder, readVariable)),
    env: readVariable,
    attaches: own === undefined,
  });
}
