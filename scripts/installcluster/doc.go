// Package installcluster has the tests of scripts/install-cluster. They run the
// script against boards that are directories, with an ssh that runs the commands
// there and a dpkg, apt-get and systemctl that write down what they are asked.
package installcluster
