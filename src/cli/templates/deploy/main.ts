import { serveAgent } from "preamp/deploy";

export default serveAgent();
