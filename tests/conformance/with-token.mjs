// The conformance suite cannot send a bearer token. This passes its requests on with one, and changes nothing else:
// not the Host, which the suite forges on purpose, and no other header.
//
//   PVEGATE_TOKEN=… node with-token.mjs http://127.0.0.1:8790    prints the port that it listens on

import http from "node:http";

const target = new URL(process.argv[2]);
const authorization = `Bearer ${process.env.PVEGATE_TOKEN}`;

const server = http.createServer((request, response) => {
  const rawHeaders = request.rawHeaders.concat("Authorization", authorization);
  const onward = http.request(
    { host: target.hostname, port: target.port, method: request.method, path: request.url, headers: rawHeaders },
    (answer) => {
      response.writeHead(answer.statusCode, answer.statusMessage, answer.rawHeaders);
      answer.pipe(response);
    },
  );
  onward.on("error", () => response.destroy());
  response.on("close", () => onward.destroy());
  request.pipe(onward);
});

server.listen(0, "127.0.0.1", () => console.log(server.address().port));
