"""A legacy app without any registry client: says its process id by bare TCP."""
import os
import socketserver
import sys


class Ledger(socketserver.BaseRequestHandler):
    def handle(self):
        try:
            self.request.sendall(b"ledger, process %d\n" % os.getpid())
        except OSError:
            pass  # whoever only looked whether the port is open is gone


socketserver.ThreadingTCPServer.allow_reuse_address = True
socketserver.ThreadingTCPServer(("127.0.0.1", int(sys.argv[1])), Ledger).serve_forever()
