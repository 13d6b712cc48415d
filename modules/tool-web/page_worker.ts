/** The first file of a worker that converts one page. */
import { serveTask } from "../worker/worker_task.ts";
import { markdownOf } from "./markdown.ts";

serveTask(markdownOf);
