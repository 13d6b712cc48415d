/** The first file of a worker that reads one large message of a server. */
import { serveTask } from "../worker/worker_task.ts";
import type { LargeMessage } from "./inbox.ts";
import { readMessages } from "./messages.ts";

serveTask(({ text, open, alone }: LargeMessage) => readMessages(text, open, alone));
